#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost {

/// The addresses of a World's devices in this process. There is a range for each domain of its
/// devices. Every device of the world has a place in each range, mapped if it is in reach. Not
/// thread-safe.
class Spaces {
 public:
  /// A process without devices has a range of CPU devices, for the memory that it can map.
  explicit Spaces(Layout const& layout);

  char* base(u32 own) const { return of_own(own).base(); }
  u64 stride(u32 own) const { return of_own(own).stride(); }
  u64 stride() const;       ///< the smallest
  u64 granularity() const;  ///< the largest
  /// The mapped address, if there is one: for the host, and for all devices that reach it.
  char* at(u32 device, u64 offset) const;
  /// The address that an own device has for the same place, in reach or not.
  char* seen_by(u32 own, u32 device, u64 offset) const {
    return base(own) + device * stride(own) + offset;
  }

  // As in AddressSpace.
  void extend(Bytes offset, Bytes size);
  /// Undoes extend() and adopt() there, also if they failed half-way.
  void shrink(Bytes offset, Bytes size) noexcept;
  int share(u32 own, Bytes offset, Bytes size);
  /// Does nothing if no device of this process reaches it.
  void adopt(u32 device, Bytes offset, Bytes size, int file);

 private:
  AddressSpace& of_own(u32 own) const { return *spaces_[by_device_[layout_.first_device + own]]; }

  static constexpr u32 none = ~0u;
  Layout layout_;
  std::vector<std::unique_ptr<AddressSpace>> spaces_;
  std::vector<u32> by_device_;  // the range where it is mapped; none: nowhere
};

}  // namespace meshpost
