#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// Threads of a rank that do one piece of work together: on a GPU its first warp, or one thread; on
/// a CPU device one thread. All threads of a team call its functions.
struct Team {
  u32 thread = 0;   ///< this one's number. Not below `threads`: it is not in the team
  u32 threads = 1;  ///< at most 32

  MESHPOST_FN bool has_me() const { return thread < threads; }
  MESHPOST_FN bool first() const { return thread == 0; }
  /// True for the first thread that has not left. Usually that is first(), but it may have failed
  /// alone. Where threads have gone apart it may be true for several.
  MESHPOST_FN bool first_left() const {
#if defined(__CUDA_ARCH__)
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
    __syncwarp(mask());
#endif
  }
  MESHPOST_FN bool any(bool yes) const {
#if defined(__CUDA_ARCH__)
    return __any_sync(mask(), yes) != 0;
#else
    return yes;
#endif
  }
  /// The value of the first thread.
  MESHPOST_FN u32 from_first(u32 value) const {
#if defined(__CUDA_ARCH__)
    return __shfl_sync(mask(), value, 0);
#else
    return value;
#endif
  }

 private:
  MESHPOST_FN u32 mask() const { return ~u32{0} >> (32 - threads); }
};

}  // namespace meshpost
