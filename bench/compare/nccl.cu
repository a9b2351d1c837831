// NCCL, called by the host: one process with all GPUs, with a communicator and a stream for each.
#include <nccl.h>

#include "peer.cuh"

namespace {

using namespace peer;

void check(ncclResult_t status, char const* what) {
  if (status != ncclSuccess) fail(what, ncclGetErrorString(status));
}

__global__ void wait_for_host(int volatile* go) {
  while (*go == 0) {
  }
}

class Group {
 public:
  Group(int gpus, u64 bytes) : comms(gpus), streams(gpus), from(gpus), into(gpus) {
    check(ncclCommInitAll(comms.data(), gpus, nullptr), "ncclCommInitAll");
    for (int gpu = 0; gpu < gpus; ++gpu) {
      peer::check(cudaSetDevice(gpu), "cudaSetDevice");
      peer::check(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking), "stream");
      peer::check(cudaMalloc(&from[gpu], bytes), "cudaMalloc");
      peer::check(cudaMalloc(&into[gpu], bytes), "cudaMalloc");
      peer::check(cudaMemset(from[gpu], 0, bytes), "cudaMemset");
    }
    for (int gpu = 0; gpu < gpus; ++gpu) {
      peer::check(cudaSetDevice(gpu), "cudaSetDevice");
      peer::check(cudaDeviceSynchronize(), "cudaMemset");
    }
  }

  void send(int gpu, u64 bytes) {
    int const other = 1 - gpu;
    check(ncclGroupStart(), "ncclGroupStart");
    check(ncclSend(from[gpu], bytes, ncclChar, other, comms[gpu], streams[gpu]), "ncclSend");
    check(ncclRecv(into[other], bytes, ncclChar, gpu, comms[other], streams[other]), "ncclRecv");
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

  void all_reduce(u64 bytes) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (std::size_t gpu = 0; gpu < comms.size(); ++gpu)
      check(ncclAllReduce(from[gpu], into[gpu], bytes / sizeof(double), ncclDouble, ncclMax,
                          comms[gpu], streams[gpu]),
            "ncclAllReduce");
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

  void finish() {
    for (auto const stream : streams) peer::check(cudaStreamSynchronize(stream), "NCCL's kernels");
  }

  /// The same if all operations are queued before the first begins, so that the host's speed does
  /// not count. Few enough for the driver to hold.
  double each_held_us(u64 rounds, auto&& operation) {
    auto const time_of = [&](u64 times) {
      *go = 0;
      for (std::size_t gpu = 0; gpu < streams.size(); ++gpu) {
        peer::check(cudaSetDevice(static_cast<int>(gpu)), "cudaSetDevice");
        wait_for_host<<<1, 1, 0, streams[gpu]>>>(go);
      }
      for (u64 i = 0; i < times; ++i) operation();
      return host_us([&] { *go = 1; }, [&] { finish(); });
    };
    time_of(rounds);
    return (time_of(rounds) - time_of(rounds / 10)) / static_cast<double>(rounds - rounds / 10);
  }

  /// Time of one `operation` of so many in a row. As many untimed ones come first, in which NCCL
  /// sets itself up.
  template <class Operation>
  double each_us(u64 rounds, Operation&& operation) {
    auto const enqueue = [&] {
      for (u64 i = 0; i < rounds; ++i) operation();
    };
    enqueue();
    finish();
    return host_us(enqueue, [&] { finish(); }) / static_cast<double>(rounds);
  }

 private:
  std::vector<ncclComm_t> comms;
  std::vector<cudaStream_t> streams;
  std::vector<char*> from, into;
  int volatile* go = [] {
    int* word = nullptr;
    peer::check(cudaHostAlloc(&word, sizeof *word, cudaHostAllocPortable), "cudaHostAlloc");
    return word;
  }();
};

void measure_pairs(Group& group, Arguments const& given) {
  for (u64 const bytes : given.sizes) {
    auto const there_and_back = [&] {
      group.send(0, bytes);
      group.send(1, bytes);
    };
    print({"NCCL", "put_notify",
           "ncclSend and ncclRecv, then back, in two streams; host's clock, half a round trip", 2,
           0, bytes},
          repeat(given.repetitions,
                 [&] { return group.each_us(rounds_of(bytes, 200), there_and_back) / 2; }));
    print({"NCCL", "stream_put",
           "ncclSend and ncclRecv, then back, in two streams, all queued before; half a round trip",
           2, 0, bytes},
          repeat(given.repetitions, [&] { return group.each_held_us(50, there_and_back) / 2; }));
    print({"NCCL", "put_rate", "ncclSend and ncclRecv, 64 in a row; host's clock", 2, 0, bytes},
          repeat(given.repetitions,
                 [&] { return group.each_us(in_a_row, [&] { group.send(0, bytes); }); }));
  }
}

void measure_groups(Group& group, Arguments const& given) {
  for (u64 const bytes : given.sizes)
    print({"NCCL", "all_reduce",
           "ncclAllReduce of a vector of each GPU, maximum of doubles; host's clock", given.gpus, 0,
           bytes},
          repeat(given.repetitions, [&] {
            return group.each_us(rounds_of(bytes, 200), [&] { group.all_reduce(bytes); });
          }));
}

}  // namespace

int main(int count, char** words) {
  Arguments const given(count, words);
  int number = 0;
  check(ncclGetVersion(&number), "ncclGetVersion");
  version("NCCL", std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
                      std::to_string(number % 100));
  Group group(given.gpus, *std::max_element(given.sizes.begin(), given.sizes.end()));
  if (given.pairs) measure_pairs(group, given);
  else measure_groups(group, given);
}
