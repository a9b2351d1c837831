#pragma once
#include <sched.h>

#include <algorithm>

#include "meshpost/base/fn.hpp"

namespace meshpost::cpu {

/// Cores that this process may run on (affinity, containers), at least one.
inline u32 usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// Between two looks at a word that another core writes.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

}  // namespace meshpost::cpu
