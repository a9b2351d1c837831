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
