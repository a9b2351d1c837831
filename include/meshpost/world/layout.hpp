#pragma once
#include <memory>
#include <optional>
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
  u32 sharers = 1;  ///< processes whose kernels must fit together on the devices of this one
  std::vector<std::string> names;    ///< of all devices, for messages
  std::vector<DeviceTraits> traits;  ///< of their kinds
  std::vector<u32> processes;        ///< that all devices belong to
  /// Of all devices: those of equal domain reach each other's memory by loads and stores. Numbers
  /// are this process's own.
  std::vector<u32> domains;
  bool far_processes = false;  ///< some process is out of reach of some other: known to all alike

  u32 device_count() const { return static_cast<u32>(names.size()); }
  u32 ranks() const { return device_count() * ranks_per_device; }
  u32 device_of(u32 rank) const { return rank / ranks_per_device; }
  u32 own_count() const { return static_cast<u32>(devices.size()); }
  bool owns(u32 device) const { return device - first_device < own_count(); }
  bool owns_rank(u32 rank) const { return owns(device_of(rank)); }
  /// Whether ranks of an own device can't load and store a device's memory.
  bool far(u32 own, u32 device) const { return domains[first_device + own] != domains[device]; }
  /// Whether this is so of any two devices of which this process has the first.
  bool any_far() const;
  /// Whether it is so of a device here and one of that process, another one.
  bool far_from(u32 process) const;
  /// Whether devices of processes other than its own load and store a device's memory.
  bool is_reached_elsewhere(u32 device) const;
  /// Whether processes other than its own may map a device's memory. Known of those that this one
  /// shares memory with.
  bool is_mapped_elsewhere(u32 device) const;
  /// An own device that reaches that one, by its number here, if there is one.
  std::optional<u32> neighbour(u32 device) const;
  /// An own device, by its number in the world.
  Device& own(u32 device) const { return *devices[device - first_device]; }
};

/// The devices that `spec` names, with `ranks` ranks each; 0: the devices' default, shared among
/// CPU devices. `apart`: no device is in reach of another.
/// \throws Error(bad_argument)
Layout make_layout(std::string const& spec, u32 ranks, bool apart = false);

/// The domains of devices of one process: each is in the first one all of whose devices reach it,
/// and it them.
std::vector<u32> domains_of(std::vector<std::shared_ptr<Device>> const& devices);

/// Sets ranks_per_device where it is 0, and checks it. `usual`: the devices' default.
/// \throws Error(bad_argument)
void choose_ranks(Layout& layout, u32 usual);

}  // namespace meshpost
