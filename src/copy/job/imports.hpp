#pragma once
#include <map>

#include "copy/job/part.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::copying {

/// Other processes' allocations, mapped here: each once. Not thread-safe; what is mapped stays
/// where it is until it is dropped.
class Imports {
 public:
  Imports() = default;
  ~Imports();
  Imports(Imports const&) = delete;
  Imports& operator=(Imports const&) = delete;

  /// Where a process's part begins here; maps its allocation if it is new. `file`: what was passed
  /// along, or -1. \throws Error(bad_environment) with the reason if it can't be mapped
  char* map(u32 process, Part const& part, int file);
  /// Its owner has freed it, and copies from and to it no more.
  void drop(u32 process, AllocationName const& name);

 private:
  struct Import {
    char* begin;
    u64 size;
    Backend* kind;  // null: a memory file
  };
  static void unmap(Import const& import);

  std::map<std::pair<u32, AllocationName>, Import> all_;
};

}  // namespace meshpost::copying
