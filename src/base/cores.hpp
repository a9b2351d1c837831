#pragma once
#include <sched.h>

#include <algorithm>

#include "meshpost/base/fn.hpp"

namespace meshpost {

/// Cores that this process may run on (affinity, containers), at least one.
inline u32 usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace meshpost
