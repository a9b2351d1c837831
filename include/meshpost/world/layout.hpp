#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost {

/// Which ranks live on which device: rank r of the world is rank r % ranks_per_device of device
/// r / ranks_per_device. A plain value.
struct Layout {
  std::vector<std::shared_ptr<Device>> devices;
  u32 ranks_per_device = 0;

  u32 device_count() const { return static_cast<u32>(devices.size()); }
  u32 ranks() const { return device_count() * ranks_per_device; }
  u32 device_of(u32 rank) const { return rank / ranks_per_device; }
};

/// The devices that `spec` names, with `ranks` ranks each; 0: the devices' default, shared among
/// CPU devices.
/// \throws Error(bad_argument)
Layout make_layout(std::string const& spec, u32 ranks);

}  // namespace meshpost
