#pragma once
#include <string>

#include "meshpost/base/descriptor.hpp"

// With libfabric's shm each endpoint has a file of 16 MiB in shared memory. The endpoint removes it
// when it ends, unless its process is killed. Then others remove it: engines that begin or end, and
// meshpost-run.

namespace meshpost::net::ofi {

/// The name of an endpoint's shared memory, as shm_open() takes it.
std::string shared_memory_of(std::string const& native);

/// Holds the memory (base/held.hpp) until the descriptor is closed.
Descriptor hold_shared_memory(std::string const& name);

/// Removes the files that ended processes of this user have left. Thread-safe.
void remove_stale_files() noexcept;

}  // namespace meshpost::net::ofi
