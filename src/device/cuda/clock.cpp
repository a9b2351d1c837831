// Compiled as CUDA, for the kernel below.
#include "device/cuda/clock.hpp"

#include <chrono>
#include <thread>

#include "device/cuda/check.hpp"

namespace meshpost::cuda {
namespace {

constexpr u32 exchanges = 32;

struct ClockExchange {
  u32 asked;
  u32 answered;
  u64 device_time;
};

__global__ void answer_with_time(ClockExchange volatile* exchange) {
  for (u32 i = 1; i <= exchanges; ++i) {
    while (exchange->asked != i && exchange->asked != ~0u) {
    }
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    exchange->device_time = now;
    __threadfence_system();
    exchange->answered = i;
  }
}

__global__ void store_time(u64* word) {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *word = now;
}

i64 host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

i64 clock_offset(int device) {
  Current const current(device);
  ClockExchange* shared = nullptr;
  check(cudaHostAlloc(&shared, sizeof *shared, cudaHostAllocPortable | cudaHostAllocMapped),
        "align clocks");
  auto* const exchange = const_cast<ClockExchange volatile*>(shared);
  *shared = {};
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "align clocks");
  answer_with_time<<<1, 1, 0, stream>>>(exchange);
  auto const launched = cudaGetLastError();
  i64 best_trip = ~(u64{1} << 63), offset = 0;
  i64 const give_up = host_now() + 2'000'000'000;
  for (u32 i = 1; launched == cudaSuccess && i <= exchanges; ++i) {
    i64 const before = host_now();
    exchange->asked = i;
    while (exchange->answered != i && host_now() < give_up) {
    }
    i64 const after = host_now();
    if (after >= give_up) break;
    // The shortest exchange tells its middle best.
    if (after - before < best_trip) {
      best_trip = after - before;
      offset = before + (after - before) / 2 - static_cast<i64>(exchange->device_time);
    }
  }
  exchange->asked = ~0u;
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaFreeHost(shared);
  check(launched, "align clocks");
  return offset;
}

cudaError_t store_clock(cudaStream_t stream, u64* word) {
  store_time<<<1, 1, 0, stream>>>(word);
  return cudaGetLastError();
}

}  // namespace meshpost::cuda
