#pragma once
#include <functional>
#include <map>
#include <tuple>

#include "meshpost/device/backend.hpp"
#include "world/mappable.hpp"

namespace meshpost {

/// Other processes' allocations, each mapped here once. Not thread-safe. A mapping stays where it
/// is until it is dropped.
class Imports {
 public:
  Imports() = default;
  ~Imports();
  Imports(Imports const&) = delete;
  Imports& operator=(Imports const&) = delete;

  /// Maps `size` bytes from `offset` on of a process's allocation, so that `device` of this process
  /// can load and store there. `device` null: for the host; only memory files are mapped for it.
  /// The allocation is mapped only once. `file`: the one that was passed along, or -1.
  /// \throws Error(bad_environment) with the reason if it can't be mapped
  char* map(u32 process, Mappable const& allocation, u64 offset, u64 size, Device* device,
            int file);
  /// The owner has freed the allocation, and nobody uses it any more.
  void drop(u32 process, AllocationName const& name);

 private:
  struct Import {
    char* begin;
    u64 size;
    Backend* kind;  // null: a memory file
  };
  static void unmap(Import const& import);

  std::map<std::tuple<u32, AllocationName, Device*>, Import> all_;
};

}  // namespace meshpost
