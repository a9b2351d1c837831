#pragma once
// 32 slots at once: by the 32 threads of a warp on GPUs, by a loop of one thread elsewhere. So
// there is one source for both, and on CPU devices the loops are plain ones.
#include <meshpost/meshpost.hpp>

#include <bit>

namespace particles {

using meshpost::i64;
using meshpost::u32;
using meshpost::u64;

inline constexpr u32 lanes = 32;

/// Calls work(lane) for all lanes. On a GPU each thread of the warp calls it for its own lane.
template <class Work>
MESHPOST_FN inline void each_lane(Work&& work) {
#if defined(__CUDA_ARCH__)
  work(threadIdx.x % lanes);
#else
  for (u32 lane = 0; lane < lanes; ++lane) work(lane);
#endif
}

/// The bits that the lanes have set, each its own one.
MESHPOST_FN inline u32 joined(u32 bits) {
#if defined(__CUDA_ARCH__)
  return __ballot_sync(~0u, bits != 0);
#else
  return bits;
#endif
}

/// True for one thread of those that share the lanes.
MESHPOST_FN inline bool leads() {
#if defined(__CUDA_ARCH__)
  return threadIdx.x % lanes == 0;
#else
  return true;
#endif
}

MESHPOST_FN inline u32 count_bits(u32 bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<u32>(__popc(static_cast<int>(bits)));
#else
  return static_cast<u32>(std::popcount(bits));
#endif
}

/// The lowest bit that is set; there is one.
MESHPOST_FN inline u32 lowest_bit(u64 bits) {
#if defined(__CUDA_ARCH__)
  return static_cast<u32>(__ffsll(static_cast<i64>(bits))) - 1;
#else
  return static_cast<u32>(std::countr_zero(bits));
#endif
}

/// The sum of the lanes' numbers, for all of them. On CPU devices the one thread has it already.
MESHPOST_FN inline u32 sum_of_lanes(u32 value) {
#if defined(__CUDA_ARCH__)
#pragma unroll
  for (u32 step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
#endif
  return value;
}

#if defined(__CUDA_ARCH__)
// Loads that stay where they are written. The compiler moves others to their first use, and there
// each waits for the one before it.
__device__ inline float load_now(float const* from) {
  float value;
  asm volatile("ld.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline double load_now(double const* from) {
  double value;
  asm volatile("ld.f64 %0, [%1];" : "=d"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline u32 load_now(u32 const* from) {
  u32 value;
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
#endif

/// Threads that share the lanes, as a number among others: a warp on GPUs, one thread elsewhere.
struct Team {
  u32 number, teams;

  /// `thread` of `threads`, which on GPUs are whole warps.
  MESHPOST_FN static Team of(u64 thread, u64 threads) {
    if (threads < lanes) return {static_cast<u32>(thread), static_cast<u32>(threads)};
    return {static_cast<u32>(thread / lanes), static_cast<u32>(threads / lanes)};
  }
  /// Calls work(unit) for this team's share of `units`.
  template <class Work>
  MESHPOST_FN void each(u32 units, Work&& work) const {
    for (u32 unit = number; unit < units; unit += teams) work(unit);
  }
};

}  // namespace particles
