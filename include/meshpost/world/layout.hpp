#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost {

/// The device of each rank, and the process of each device. Rank r of the world is rank r %
/// ranks_per_device of device r / ranks_per_device. A plain value.
struct Layout {
  std::vector<std::shared_ptr<Device>> devices;  ///< of this process
  u32 first_device = 0;                          ///< number of the first of them in the world
  u32 ranks_per_device = 0;
  u32 sharers = 1;  ///< processes whose kernels must fit together on the devices of this one
  std::vector<std::string> names;    ///< of all devices, for messages
  std::vector<DeviceTraits> traits;  ///< of their kinds
  std::vector<u32> processes;        ///< that the devices belong to
  /// One for each device. Devices of equal domain reach each other's memory by loads and stores.
  /// The numbers are this process's own.
  std::vector<u32> domains;
  bool far_processes =
      false;  ///< some process is out of reach of some other; the same in all processes

  u32 device_count() const { return static_cast<u32>(names.size()); }
  u32 ranks() const { return device_count() * ranks_per_device; }
  u32 device_of(u32 rank) const { return rank / ranks_per_device; }
  u32 own_count() const { return static_cast<u32>(devices.size()); }
  bool owns(u32 device) const { return device - first_device < own_count(); }
  bool owns_rank(u32 rank) const { return owns(device_of(rank)); }
  /// True if ranks of an own device can't load and store a device's memory.
  bool far(u32 own, u32 device) const { return domains[first_device + own] != domains[device]; }
  /// True if this holds for any two devices, the first of which is this process's.
  bool any_far() const;
  /// True if it holds for a device here and one of `process`, which is another process.
  bool far_from(u32 process) const;
  /// True if devices of processes other than its own load and store a device's memory.
  bool is_reached_elsewhere(u32 device) const;
  /// True if processes other than its own may map a device's memory. It is known for devices of
  /// processes that this one shares memory with.
  bool is_mapped_elsewhere(u32 device) const;
  /// An own device that reaches that one, by its number here. Nothing if there is none.
  std::optional<u32> neighbour(u32 device) const;
  /// An own device, by its number in the world.
  Device& own(u32 device) const { return *devices[device - first_device]; }
};

/// The devices that `spec` names, with `ranks` ranks each. 0 means the devices' default, which is
/// shared among CPU devices. `apart`: no device is in reach of another.
/// \throws Error(bad_argument)
Layout make_layout(std::string const& spec, u32 ranks, bool apart = false);

/// The domains of devices of one process. Each device is in the first domain whose devices all
/// reach it and are reached by it.
std::vector<u32> domains_of(std::vector<std::shared_ptr<Device>> const& devices);

/// Sets ranks_per_device if it is 0, and checks it. `usual`: the devices' default.
/// \throws Error(bad_argument)
void choose_ranks(Layout& layout, u32 usual);

}  // namespace meshpost
