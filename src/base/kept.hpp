#pragma once
#include <utility>

// What outlives its owner: a thread may still use it, or it is a parent process's.

namespace meshpost {

/// Notes that this process uses the library. Processes that fork() makes of it from then on may
/// not. Thread-safe. \returns false in such a process
bool begin_use() noexcept;

/// Whether this process was made by fork() from one that used the library: threads and connections
/// of what it has inherited are missing, or the parent's. A load. Thread-safe.
bool is_forked() noexcept;

/// Keeps `what` until the process ends: never freed, and no leak. Thread-safe, also after fork().
void keep_for_ever(void const* what) noexcept;

/// In a process of is_forked(): keeps what `owned` (a smart pointer, say) owns until the process
/// ends, so that its destructor does not run there. \returns whether it did
template <class Owner>
bool leave_to_parent(Owner& owned) {
  if (!is_forked()) return false;
  keep_for_ever(new Owner(std::move(owned)));
  return true;
}

}  // namespace meshpost
