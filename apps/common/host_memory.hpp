#pragma once
#include <unistd.h>

namespace meshpost::apps {

/// Bytes of memory of this host. The system may promise more, and fail at its use.
inline double host_memory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace meshpost::apps
