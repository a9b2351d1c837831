#pragma once
#include <string>

#include "meshpost/base/descriptor.hpp"

// Over libfabric's shm each endpoint has a file of 16 MiB in shared memory, which it takes away
// when it ends, unless its process is killed. Then others do it: engines that begin or end, and
// meshpost-run.

namespace meshpost::net::ofi {

/// The name of an endpoint's shared memory, as shm_open() takes it.
std::string shared_memory_of(std::string const& native);

/// Holds it (base/held.hpp) until the descriptor is closed.
Descriptor hold_shared_memory(std::string const& name);

/// Removes what endpoints of this user's processes that are gone have left. Thread-safe.
void remove_stale_files() noexcept;

}  // namespace meshpost::net::ofi
