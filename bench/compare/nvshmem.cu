// NVSHMEM, called from kernels, with one process for each GPU. COMPARE_PROCESS is this process's
// number. COMPARE_MEETING is a file with the data that the others need to join; process 0 writes
// it.
#include <cooperative_groups.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "peer.cuh"

namespace {

using namespace peer;

constexpr int apart = 16;  // words between two blocks' signals: one cache line each

/// Each block exchanges messages with the same block of the other GPU. Without bytes: a signal
/// alone.
__global__ void ping_pong(char* target, char* source, u64* signals, u64* elapsed, u64 bytes,
                          u64 warm_up, u64 rounds) {
  int const me = nvshmem_my_pe(), other = 1 - me;
  u64* const signal = signals + blockIdx.x * apart;
  u64 const own = blockIdx.x * bytes;
  u64 begin = 0;
  for (u64 i = 1; i <= warm_up + rounds; ++i) {
    if (i == warm_up + 1) begin = now();
    for (int half = 0; half < 2; ++half) {
      if (half != me) {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, i);
        __syncthreads();
      } else if (bytes != 0) {
        nvshmemx_putmem_signal_nbi_block(target + own, source + own, bytes, signal, i,
                                         NVSHMEM_SIGNAL_SET, other);
      } else if (threadIdx.x == 0) {
        nvshmemx_signal_op(signal, i, NVSHMEM_SIGNAL_SET, other);
      }
    }
  }
  if (threadIdx.x == 0) elapsed[blockIdx.x] = now() - begin;
}

/// Blocks of process 0 send. At the end they wait until the other side has seen everything.
__global__ void stream_of_puts(char* target, char* source, u64* signals, u64* elapsed, u64 bytes) {
  int const me = nvshmem_my_pe(), other = 1 - me;
  u64* const signal = signals + blockIdx.x * apart;
  u64 const own = blockIdx.x * bytes;
  // Both sides are ready before the clock starts.
  if (threadIdx.x == 0) {
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, other);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
  }
  __syncthreads();
  u64 const begin = now();
  for (u64 i = 0; me == 0 && i < in_a_row; ++i)
    nvshmemx_putmem_signal_nbi_block(target + own, source + own, bytes, signal, 2 + i,
                                     NVSHMEM_SIGNAL_SET, other);
  if (threadIdx.x == 0) {
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, me == 0 ? 2 : 1 + in_a_row);
    if (me != 0) nvshmemx_signal_op(signal, 2, NVSHMEM_SIGNAL_SET, other);
    elapsed[blockIdx.x] = now() - begin;
  }
}

/// A barrier of all blocks of all GPUs. Blocks of a GPU meet before and after one of them meets the
/// other GPUs.
__global__ void barriers(u64* elapsed, u64 rounds) {
  auto const grid = cooperative_groups::this_grid();
  u64 begin = 0;
  for (u64 i = 0; i <= rounds; ++i) {
    if (i == 1) begin = now();
    if (gridDim.x > 1) grid.sync();
    if (blockIdx.x == 0) nvshmemx_barrier_all_block();
    if (gridDim.x > 1) grid.sync();
  }
  if (threadIdx.x == 0) elapsed[blockIdx.x] = now() - begin;
}

__global__ void all_reduces(double* target, double* source, u64* elapsed, u64 count, u64 rounds) {
  u64 begin = 0;
  for (u64 i = 0; i <= rounds; ++i) {
    if (i == 1) begin = now();
    nvshmemx_double_max_reduce_block(NVSHMEM_TEAM_WORLD, target, source, count);
  }
  if (threadIdx.x == 0) elapsed[0] = now() - begin;
}

class Job {
 public:
  Job(int process, int processes, std::filesystem::path const& meeting) : process(process) {
    check(cudaSetDevice(process), "cudaSetDevice");
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (process == 0) {
      if (nvshmemx_get_uniqueid(&id) != 0) fail("nvshmemx_get_uniqueid", "failed");
      auto const unfinished = meeting.string() + ".new";
      std::ofstream(unfinished, std::ios::binary).write(reinterpret_cast<char*>(&id), sizeof id);
      std::filesystem::rename(unfinished, meeting);
    } else {  // compare.py ends it if process 0 does not come
      while (!std::filesystem::exists(meeting))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::ifstream(meeting, std::ios::binary).read(reinterpret_cast<char*>(&id), sizeof id);
    }
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(process, processes, &id, &attributes);
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0)
      fail("nvshmemx_init_attr", "failed; see its messages above");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cudaMalloc(&elapsed, blocks * sizeof(u64)), "elapsed");
    signals = static_cast<u64*>(nvshmem_calloc(blocks * apart, sizeof(u64)));
    if (signals == nullptr) fail("nvshmem_calloc", "no memory");
  }

  ~Job() {
    release();
    nvshmem_free(signals);
    nvshmem_finalize();
  }

  /// Symmetric memory for messages of so many bytes, both ways; false if it takes over a quarter.
  bool hold(u64 bytes) {
    release();
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    if (2 * bytes > all / 4) return false;  // equal in all processes, so that all decide alike
    memory = static_cast<char*>(nvshmem_malloc(2 * bytes));
    other_half = bytes;
    return memory != nullptr;
  }

  char* source() const { return memory; }
  char* target() const { return memory + other_half; }

  /// Runs a kernel with these arguments; returns the us of the slowest block in this process.
  template <class... Values>
  double slowest_us(int count, int threads, void (*kernel)(Values...), Values... values) {
    check(cudaMemset(signals, 0, blocks * apart * sizeof(u64)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
    nvshmem_barrier_all();
    void* arguments[] = {&values...};
    if (nvshmemx_collective_launch(reinterpret_cast<void const*>(kernel), count, threads, arguments,
                                   0, stream) != 0)
      fail("nvshmemx_collective_launch", "failed");
    check(cudaStreamSynchronize(stream), "kernel");
    std::vector<u64> times(count);
    check(cudaMemcpy(times.data(), elapsed, count * sizeof(u64), cudaMemcpyDefault), "elapsed");
    return static_cast<double>(*std::max_element(times.begin(), times.end())) * 1e-3;
  }

  double one_way_us(u64 bytes, int count) {
    u64 const rounds = rounds_of(bytes * count), warm_up = rounds / 10 + 1;
    return slowest_us(count, latency_threads, ping_pong, target(), source(), signals, elapsed,
                      bytes, warm_up, rounds) /
           static_cast<double>(rounds) / 2;
  }

  double put_us(u64 bytes, int count) {
    return slowest_us(count, rate_threads, stream_of_puts, target(), source(), signals, elapsed,
                      bytes) /
           in_a_row;
  }

  double barrier_us(int count) {
    u64 const rounds = 1000;
    return slowest_us(count, latency_threads, barriers, elapsed, rounds) / rounds;
  }

  double all_reduce_us(u64 bytes) {
    u64 const rounds = rounds_of(bytes, 1000);
    return slowest_us(1, latency_threads, all_reduces, reinterpret_cast<double*>(target()),
                      reinterpret_cast<double*>(source()), elapsed, u64{bytes / sizeof(double)},
                      rounds) /
           static_cast<double>(rounds);
  }

  double one_way_on_stream_us(u64 bytes) {
    check(cudaMemset(signals, 0, sizeof(u64)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaMemset");
    nvshmem_barrier_all();
    u64 const rounds = rounds_of(bytes, 200);
    u64 done = 0;
    auto const send = [&](u64 number) {
      nvshmemx_putmem_signal_on_stream(target(), source(), bytes, signals, number,
                                       NVSHMEM_SIGNAL_SET, 1 - process, stream);
    };
    auto const receive = [&](u64 number) {
      nvshmemx_signal_wait_until_on_stream(signals, NVSHMEM_CMP_GE, number, stream);
    };
    auto const enqueue = [&] {
      for (u64 i = 0; i < rounds; ++i) {
        ++done;
        if (process == 0) send(done), receive(done);
        else receive(done), send(done);
      }
    };
    auto const finish = [&] { check(cudaStreamSynchronize(stream), "puts on a stream"); };
    enqueue();
    finish();
    nvshmem_barrier_all();
    return host_us(enqueue, finish) / static_cast<double>(rounds) / 2;
  }

  double all_reduce_on_stream_us(u64 bytes) {
    u64 const rounds = rounds_of(bytes, 200);
    auto const enqueue = [&] {
      for (u64 i = 0; i < rounds; ++i)
        nvshmemx_double_max_reduce_on_stream(
            NVSHMEM_TEAM_WORLD, reinterpret_cast<double*>(target()),
            reinterpret_cast<double*>(source()), bytes / sizeof(double), stream);
    };
    auto const finish = [&] { check(cudaStreamSynchronize(stream), "all_reduce"); };
    enqueue();
    finish();
    nvshmem_barrier_all();
    return host_us(enqueue, finish) / static_cast<double>(rounds);
  }

  int const process;
  int const blocks = multiprocessors();

 private:
  void release() {
    if (memory != nullptr) nvshmem_free(memory);
    memory = nullptr;
  }

  cudaStream_t stream{};
  u64* signals = nullptr;
  u64* elapsed = nullptr;
  char* memory = nullptr;
  u64 other_half = 0;
};

constexpr char by_kernel[] = "NVSHMEM", by_host[] = "NVSHMEM on a stream";

void measure_pairs(Job& job, Arguments const& given, auto const& report) {
  for (u64 const bytes : given.sizes) {
    bool const held = job.hold(bytes);
    report(
        {by_host, "stream_put",
         "nvshmemx_putmem_signal_on_stream, nvshmemx_signal_wait_until_on_stream; host's clock, "
         "half a round trip",
         2, 0, bytes},
        [&] { return job.one_way_on_stream_us(bytes); }, held);
  }
  for (int const blocks : {1, job.blocks}) {
    report({by_kernel, "notify", "nvshmemx_signal_op, nvshmem_signal_wait_until; half a round trip",
            2, blocks},
           [&] { return job.one_way_us(0, blocks); });
    for (u64 const bytes : given.sizes) {
      Row const row{
          by_kernel,
          "put_notify",
          "nvshmemx_putmem_signal_nbi_block, nvshmem_signal_wait_until; half a round trip",
          2,
          blocks,
          bytes};
      Row const rate{
          by_kernel, "put_rate", "nvshmemx_putmem_signal_nbi_block, 64 times; ends with a reply",
          2,         blocks,     bytes};
      bool const held = job.hold(bytes * blocks);
      report(row, [&] { return job.one_way_us(bytes, blocks); }, held);
      report(rate, [&] { return job.put_us(bytes, blocks); }, held);
    }
  }
}

void measure_groups(Job& job, Arguments const& given, auto const& report) {
  report({by_kernel, "barrier", "nvshmemx_barrier_all_block, which also completes puts", given.gpus,
          1},
         [&] { return job.barrier_us(1); });
  report({by_kernel, "barrier",
          "grid.sync, nvshmemx_barrier_all_block by one block of each GPU, grid.sync", given.gpus,
          job.blocks},
         [&] { return job.barrier_us(job.blocks); });
  for (u64 const bytes : given.sizes) {
    bool const held = job.hold(bytes);
    report(
        {by_kernel, "all_reduce",
         "nvshmemx_double_max_reduce_block of a vector of each GPU by one block", given.gpus, 1,
         bytes},
        [&] { return job.all_reduce_us(bytes); }, held);
    report(
        {by_host, "all_reduce",
         "nvshmemx_double_max_reduce_on_stream of a vector of each GPU; host's clock", given.gpus,
         0, bytes},
        [&] { return job.all_reduce_on_stream_us(bytes); }, held);
  }
}

}  // namespace

int main(int count, char** words) {
  Arguments const given(count, words);
  char const* const process = std::getenv("COMPARE_PROCESS");
  char const* const meeting = std::getenv("COMPARE_MEETING");
  if (process == nullptr || meeting == nullptr) fail(words[0], "start it by tools/compare.py");
  Job job(std::atoi(process), given.gpus, meeting);
  // All processes measure; process 0 reports.
  auto const report = [&](Row const& row, auto const& once, bool held = true) {
    auto const times = held ? repeat(given.repetitions, once) : Times{};
    if (job.process != 0) return;
    if (held) print(row, times);
    else skip(row, "needs more memory");
  };
  int major = 0, minor = 0, patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  if (job.process == 0)
    version("NVSHMEM",
            std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch));
  if (given.pairs) measure_pairs(job, given, report);
  else measure_groups(job, given, report);
}
