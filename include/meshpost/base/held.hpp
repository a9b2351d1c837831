#pragma once
#include <string_view>

#include "meshpost/base/descriptor.hpp"

// Files that must not outlive their process, though it may be killed. It holds them by a lock
// (flock), which the kernel takes away with the process, however that ends. So a lock says for
// certain who is gone, where a process's number may be another's by now, or mean another process in
// another container with the same folder.

namespace meshpost {

/// Holds this open file until the descriptor and all copies of it are closed, which also forked
/// processes have, and says so to remove_unheld() by the mode 1600: the sticky bit means nothing
/// for files, so no others have it. Where it can't be locked it is left as it is, and nobody
/// removes it.
void hold(Descriptor const& file) noexcept;

/// Removes from `folder` what processes of this user held that are gone, of files whose names begin
/// so. Thread-safe, also beside other processes that do the same.
void remove_unheld(char const* folder, std::string_view begin = {}) noexcept;

inline constexpr char const* shared_memory_folder = "/dev/shm";

}  // namespace meshpost
