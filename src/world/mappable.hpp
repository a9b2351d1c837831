#pragma once
#include <string>

#include "meshpost/base/descriptor.hpp"
#include "meshpost/device/device.hpp"
#include "world/wire.hpp"

namespace meshpost {

/// An allocation as its owner names it to other processes.
struct AllocationName {
  std::string kind;  ///< kind of the devices that map it; "file": a memory file
  u64 id = 0;
  auto operator<=>(AllocationName const&) const = default;
};

/// How other processes of the node map an allocation. They map it once and use offsets in it.
struct Mappable {
  AllocationName name{};  ///< no kind: it can't be mapped
  u64 size = 0;
  std::string handle{};
  bool with_file = false;  ///< its file must be passed along, once

  void pack(wire::Packer& packer) const;
  /// \throws Error(bad_argument) for garbage
  static Mappable unpack(wire::Unpacker& unpacker);
};

/// An allocation of this process, and its file if it has one.
struct Offered {
  Mappable mappable;
  char const* begin = nullptr;
  Descriptor file{};
};

/// The allocation that `memory` points into: a memory file, or memory of `device`, which is not a
/// CPU device. `device`: null for memory of the host.
/// \throws Error(bad_environment) if it can't be mapped, with the reason
Offered offer(void const* memory, Device* device);

/// Allocates memory that offer() accepts. For a CPU device it is in a memory file.
/// \throws Error(out_of_memory)
Allocation allocate_mappable(Device& device, Bytes size);

}  // namespace meshpost
