#pragma once
#include <utility>

// Things that outlive their owner: a thread may still use them, or they are a parent process's.

namespace meshpost {

/// Notes that this process uses the library. Processes that it forks from then on may not use it.
/// Thread-safe. \returns false in such a process
bool begin_use() noexcept;

/// True if this process was forked from one that used the library. The threads and connections that
/// it inherited are missing, or belong to the parent. Costs a load. Thread-safe.
bool is_forked() noexcept;

/// Keeps `what` until the process ends: it is never freed, and is no leak. Thread-safe, also after
/// fork().
void keep_for_ever(void const* what) noexcept;

/// If is_forked(): keeps the object that `owned` (such as a smart pointer) owns until the process
/// ends, so that its destructor does not run there. \returns true if it did
template <class Owner>
bool leave_to_parent(Owner& owned) {
  if (!is_forked()) return false;
  keep_for_ever(new Owner(std::move(owned)));
  return true;
}

}  // namespace meshpost
