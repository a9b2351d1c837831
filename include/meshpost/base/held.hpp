#pragma once
#include <string_view>

#include "meshpost/base/descriptor.hpp"

// Files that must not outlive their process, even if it is killed. The process holds them by a lock
// (flock). The kernel releases the lock when the process ends, in whatever way. So a lock says for
// certain if the process is gone. A process number would not: it may have been given to another
// process, or mean another one in another container with the same folder.

namespace meshpost {

/// Holds this open file until the descriptor and all copies of it are closed, also those in forked
/// processes. The mode 1600 tells remove_unheld() so. The sticky bit means nothing for files, so no
/// other files have it. If the file can't be locked, its mode stays as it is, and nobody removes
/// it.
void hold(Descriptor const& file) noexcept;

/// Removes files from `folder` that were held by processes of this user which have ended. Only
/// files whose names start with `begin`. Thread-safe, also beside other processes that do the same.
void remove_unheld(char const* folder, std::string_view begin = {}) noexcept;

inline constexpr char const* shared_memory_folder = "/dev/shm";

}  // namespace meshpost
