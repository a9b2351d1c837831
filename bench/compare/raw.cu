// The floor: two GPUs with plain CUDA. A flag alone, a block's stores followed by a flag, and
// copies by the copy engine.
#include <utility>

#include "peer.cuh"

namespace {

using namespace peer;

__device__ void raise(u64* flag, u64 value, bool release) {
  if (release) asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
  else asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

__device__ void await(u64 const* flag, u64 value, bool acquire) {
  u64 seen;
  do {
    if (acquire) asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    else asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
  } while (seen < value);
}

/// Each thread has eight loads in flight: with more, one block does not reach a higher rate on a
/// link.
template <class T>
__device__ void copy(T* target, T const* source, u64 count) {
  u64 i = threadIdx.x;
  u64 const step = blockDim.x;
  for (; i + 7 * step < count; i += 8 * step) {
    T values[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) values[k] = source[i + k * step];
#pragma unroll
    for (int k = 0; k < 8; ++k) target[i + k * step] = values[k];
  }
  for (; i < count; i += step) target[i] = source[i];
}

__device__ void copy_bytes(char* target, char const* source, u64 bytes) {
  if (bytes % sizeof(uint4) == 0)
    copy(reinterpret_cast<uint4*>(target), reinterpret_cast<uint4 const*>(source),
         bytes / sizeof(uint4));
  else copy(reinterpret_cast<u64*>(target), reinterpret_cast<u64 const*>(source), bytes / 8);
}

constexpr int apart = 16;  // words between two blocks' flags: one cache line each

/// A GPU's share of the memory; block b has `bytes` at b * bytes of source and target.
struct Side {
  char* source;
  char* target;
  u64* flags;
  u64* elapsed;
};

/// Each block exchanges messages with the same block of the other GPU. Without bytes and `ordered`:
/// the flag alone.
__global__ void ping_pong(Side mine, Side theirs, u64 bytes, u64 warm_up, u64 rounds, bool first,
                          bool ordered) {
  u64 const own = blockIdx.x * bytes;
  u64* const inbox = mine.flags + blockIdx.x * apart;
  u64* const outbox = theirs.flags + blockIdx.x * apart;
  u64 begin = 0;
  for (u64 i = 1; i <= warm_up + rounds; ++i) {
    if (i == warm_up + 1) begin = now();
    for (int half = 0; half < 2; ++half) {
      if ((half == 0) == first) {
        copy_bytes(theirs.target + own, mine.source + own, bytes);
        __syncthreads();
        if (threadIdx.x == 0) raise(outbox, i, ordered);
      } else {
        if (threadIdx.x == 0) await(inbox, i, ordered);
        __syncthreads();
      }
    }
  }
  if (threadIdx.x == 0) mine.elapsed[blockIdx.x] = now() - begin;
}

/// Blocks of the first GPU send. At the end they wait until the other side has seen everything.
__global__ void stream_of_puts(Side mine, Side theirs, u64 bytes, bool first) {
  u64 const own = blockIdx.x * bytes;
  u64* const inbox = mine.flags + blockIdx.x * apart;
  u64* const outbox = theirs.flags + blockIdx.x * apart;
  // Both sides are ready before the clock starts.
  if (threadIdx.x == 0) {
    raise(outbox, 1, true);
    await(inbox, 1, true);
  }
  __syncthreads();
  u64 const begin = now();
  for (u64 i = 0; first && i < in_a_row; ++i) {
    copy_bytes(theirs.target + own, mine.source + own, bytes);
    __syncthreads();
    if (threadIdx.x == 0) raise(outbox, 2 + i, true);
  }
  if (threadIdx.x == 0) {
    await(inbox, first ? 2 : 1 + in_a_row, true);
    if (!first) raise(outbox, 2, true);
    mine.elapsed[blockIdx.x] = now() - begin;
  }
}

class Pair {
 public:
  Pair() {
    for (int gpu = 0; gpu < 2; ++gpu) {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      check(cudaDeviceEnablePeerAccess(1 - gpu, 0), "peer access");
      check(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking), "stream");
      check(cudaEventCreateWithFlags(&events[gpu], cudaEventDisableTiming), "event");
      check(cudaMalloc(&sides[gpu].flags, blocks * apart * sizeof(u64)), "flags");
      check(cudaMalloc(&sides[gpu].elapsed, blocks * sizeof(u64)), "elapsed");
    }
  }

  /// Memory for messages of so many bytes, both ways; false if it takes over a quarter.
  bool hold(u64 bytes) {
    for (Side& side : sides) check(cudaFree(std::exchange(side.source, nullptr)), "cudaFree");
    for (int gpu = 0; gpu < 2; ++gpu) {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      std::size_t free = 0, all = 0;
      check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
      if (2 * bytes > std::min(free, all / 4)) return false;
      check(cudaMalloc(&sides[gpu].source, 2 * bytes), "cudaMalloc");
      sides[gpu].target = sides[gpu].source + bytes;
    }
    return true;
  }

  void finish() {
    for (auto const stream : streams) check(cudaStreamSynchronize(stream), "kernels or copies");
  }

  /// The slowest block's us between its first and its last timed round.
  template <class Launch>
  double slowest_us(int count, Launch&& launch) {
    for (int gpu = 0; gpu < 2; ++gpu) {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      check(cudaMemset(sides[gpu].flags, 0, blocks * apart * sizeof(u64)), "cudaMemset");
      check(cudaDeviceSynchronize(), "cudaMemset");
    }
    for (int gpu = 0; gpu < 2; ++gpu) {
      check(cudaSetDevice(gpu), "cudaSetDevice");
      launch(gpu, sides[gpu], sides[1 - gpu], streams[gpu]);
      check(cudaGetLastError(), "launch");
    }
    finish();
    std::vector<u64> elapsed(count);
    check(cudaMemcpy(elapsed.data(), sides[0].elapsed, count * sizeof(u64), cudaMemcpyDefault),
          "elapsed");
    return static_cast<double>(*std::max_element(elapsed.begin(), elapsed.end())) * 1e-3;
  }

  double one_way_us(u64 bytes, int count, bool ordered) {
    u64 const rounds = rounds_of(bytes * count), warm_up = rounds / 10 + 1;
    double const all = slowest_us(count, [&](int gpu, Side mine, Side theirs, cudaStream_t stream) {
      ping_pong<<<count, latency_threads, 0, stream>>>(mine, theirs, bytes, warm_up, rounds,
                                                       gpu == 0, ordered);
    });
    return all / static_cast<double>(rounds) / 2;
  }

  double put_us(u64 bytes, int count) {
    return slowest_us(count,
                      [&](int gpu, Side mine, Side theirs, cudaStream_t stream) {
                        stream_of_puts<<<count, rate_threads, 0, stream>>>(mine, theirs, bytes,
                                                                           gpu == 0);
                      }) /
           in_a_row;
  }

  void engine_copy(int from, u64 bytes) {
    check(cudaMemcpyPeerAsync(sides[1 - from].target, 1 - from, sides[from].source, from, bytes,
                              streams[from]),
          "cudaMemcpyPeerAsync");
  }

  /// Orders the work in `from`'s stream before the next work of the other stream.
  void hand_over(int from) {
    check(cudaEventRecord(events[from], streams[from]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams[1 - from], events[from]), "cudaStreamWaitEvent");
  }

  double engine_one_way_us(u64 bytes) {
    u64 const rounds = rounds_of(bytes, 200);
    auto const enqueue = [&] {
      for (u64 i = 0; i < rounds; ++i)
        for (int from = 0; from < 2; ++from) {
          engine_copy(from, bytes);
          hand_over(from);
        }
    };
    enqueue();
    finish();
    return host_us(enqueue, [&] { finish(); }) / static_cast<double>(rounds) / 2;
  }

  double engine_put_us(u64 bytes) {
    auto const enqueue = [&] {
      for (int i = 0; i < in_a_row; ++i) engine_copy(0, bytes);
    };
    enqueue();
    finish();
    return host_us(enqueue, [&] { finish(); }) / in_a_row;
  }

  int const blocks = multiprocessors();

 private:
  Side sides[2]{};
  cudaStream_t streams[2]{};
  cudaEvent_t events[2]{};
};

constexpr char stores[] = "CUDA stores", engine[] = "CUDA copy engine";

void measure(Arguments const& given) {
  Pair pair;
  auto const repeated = [&](auto const& once) { return repeat(given.repetitions, once); };
  print(
      {stores, "flag", "relaxed store to the other GPU, relaxed polling there; half a round trip"},
      repeated([&] { return pair.one_way_us(0, 1, false); }));
  for (int const blocks : {1, pair.blocks}) {
    print({stores, "notify", "release store, acquire polling; half a round trip", 2, blocks},
          repeated([&] { return pair.one_way_us(0, blocks, true); }));
    for (u64 const bytes : given.sizes) {
      Row row{stores, "put_notify", "a block's stores, then a release store; half a round trip",
              2,      blocks,       bytes};
      Row rate{stores, "put_rate", "a block's stores and a flag, 64 times; ends with a reply",
               2,      blocks,     bytes};
      if (pair.hold(bytes * blocks)) {
        print(row, repeated([&] { return pair.one_way_us(bytes, blocks, true); }));
        print(rate, repeated([&] { return pair.put_us(bytes, blocks); }));
      } else {
        skip(row, "needs more memory");
        skip(rate, "needs more memory");
      }
    }
  }
  for (u64 const bytes : given.sizes) {
    if (!pair.hold(bytes)) fail("copies", "need more memory");
    print({engine, "put_notify",
           "cudaMemcpyPeerAsync, event, the other stream waits; host's clock, half a round trip", 2,
           0, bytes},
          repeated([&] { return pair.engine_one_way_us(bytes); }));
    print({engine, "put_rate", "cudaMemcpyPeerAsync, 64 in a stream; host's clock", 2, 0, bytes},
          repeated([&] { return pair.engine_put_us(bytes); }));
  }
}

}  // namespace

int main(int count, char** words) {
  Arguments const given(count, words);
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  version("CUDA runtime", std::to_string(runtime));
  version("CUDA of the driver", std::to_string(driver));
  if (given.pairs) measure(given);
}
