#pragma once
#include <memory>
#include <string>
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost {

/// Which ranks live on which device, and which device belongs to which process: rank r of the world
/// is rank r % ranks_per_device of device r / ranks_per_device. A plain value.
struct Layout {
  std::vector<std::shared_ptr<Device>> devices;  ///< of this process
  u32 first_device = 0;                          ///< number of the first of them in the world
  u32 ranks_per_device = 0;
  u32 sharers = 1;   ///< processes whose kernels must fit together on the devices of this one
  std::string kind;  ///< of all devices
  std::vector<std::string> names;  ///< of all devices, for messages
  std::vector<u32> processes;      ///< that all devices belong to

  u32 device_count() const { return static_cast<u32>(names.size()); }
  u32 ranks() const { return device_count() * ranks_per_device; }
  u32 device_of(u32 rank) const { return rank / ranks_per_device; }
  u32 own_count() const { return static_cast<u32>(devices.size()); }
  bool owns(u32 device) const { return device - first_device < own_count(); }
  bool owns_rank(u32 rank) const { return owns(device_of(rank)); }
  /// An own device, by its number in the world.
  Device& own(u32 device) const { return *devices[device - first_device]; }
};

/// The devices that `spec` names, with `ranks` ranks each; 0: the devices' default, shared among
/// CPU devices.
/// \throws Error(bad_argument)
Layout make_layout(std::string const& spec, u32 ranks);

/// Sets ranks_per_device where it is 0, and checks it. `usual`: the devices' default.
/// \throws Error(bad_argument)
void choose_ranks(Layout& layout, u32 usual);

}  // namespace meshpost
