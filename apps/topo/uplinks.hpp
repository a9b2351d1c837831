#pragma once
#include <meshpost/meshpost.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace topo {

using Devices = std::vector<std::shared_ptr<meshpost::Device>>;

/// A PCI bridge with several devices behind it: to the host they share one link.
struct Uplink {
  std::string bridge;  ///< its PCI address: of a switch, the port towards the host
  std::string link;    ///< "16.0 GT/s PCIe x16" as the kernel names it; empty if it does not
  Devices devices;

  bool operator==(Uplink const&) const = default;
};

/// The shared uplinks of these devices, by address. If switches are behind a switch, each is one.
/// `buses`: where the kernel lists PCI devices. Devices on no bus share none.
std::vector<Uplink> shared_uplinks(Devices const& devices,
                                   std::filesystem::path const& buses = "/sys/bus/pci/devices");

/// Bytes/s from pinned memory into all these devices at once, or out of all of them: the median of
/// three copies of `size` bytes each. \throws Error(out_of_memory), Error(device_failed)
double rate_at_once(Devices const& devices, bool into, meshpost::Bytes size);

/// Prints the uplinks. `measured`: also the rates that their devices have one by one, in sum, and
/// at once.
void print_uplinks(std::vector<Uplink> const& uplinks, bool measured);

}  // namespace topo
