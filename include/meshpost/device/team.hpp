#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// Threads of a rank that do one piece of work together: on a GPU its first warp, or any one
/// thread; on a CPU device one thread. All threads of a team call its functions.
struct Team {
  u32 thread = 0;   ///< this one's number. Not below `threads`: it is not in the team
  u32 threads = 1;  ///< at most 32

  MESHPOST_FN bool has_me() const { return thread < threads; }
  MESHPOST_FN bool first() const { return thread == 0; }
  /// True for the first thread that has not left. Usually that is first(), but it may have failed
  /// alone. Where threads have gone apart it may be true for several.
  MESHPOST_FN bool first_left() const {
#if defined(__CUDA_ARCH__)
    if (alone()) return true;
    sync();
    u32 before = 0;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    return (__activemask() & mask() & before) == 0;
#else
    return true;
#endif
  }
  /// All threads of the team see what any of them stored, or acquired, before.
  MESHPOST_FN void sync() const {
#if defined(__CUDA_ARCH__)
    if (!alone()) __syncwarp(mask());
#endif
  }
  MESHPOST_FN bool any(bool yes) const {
#if defined(__CUDA_ARCH__)
    return alone() ? yes : __any_sync(mask(), yes) != 0;
#else
    return yes;
#endif
  }
  /// The value of the first thread.
  MESHPOST_FN u32 from_first(u32 value) const {
#if defined(__CUDA_ARCH__)
    return alone() ? value : __shfl_sync(mask(), value, 0);
#else
    return value;
#endif
  }

 private:
  // It may be in any place of its warp, so no function of warps is for it.
  MESHPOST_FN bool alone() const { return threads == 1; }
  MESHPOST_FN u32 mask() const { return ~u32{0} >> (32 - threads); }
};

}  // namespace meshpost
