#pragma once
#include <unistd.h>

#include "fabric/topology.hpp"

namespace meshpost::fabric {

/// The host as one node, if nothing is known about it.
inline NumaNode whole_host() {
  auto const pages = static_cast<u64>(sysconf(_SC_PHYS_PAGES));
  return {0, Bytes{pages * static_cast<u64>(sysconf(_SC_PAGESIZE))}, {}};
}

}  // namespace meshpost::fabric
