#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// Questions of discovery to libraries that may be absent: hwloc about the host (hwloc.cpp,
// no_hwloc.cpp), NVML about GPUs (nvml.cpp, loaded at run time).

namespace meshpost::fabric {

/// Memory of the host with the cores near it.
struct NumaNode {
  u32 number = 0;  ///< the kernel's
  Bytes size{};
  std::vector<u32> cores;
};

/// The NUMA nodes that have memory, in the order of their numbers; at least one. Determined once
/// for the process. Thread-safe.
std::vector<NumaNode> const& numa_nodes();

/// The node that a PCI address ("0000:1b:00.0") belongs to; nothing if that can't be known.
std::optional<u32> node_of_bus(std::string const& bus);

/// "PCIe 5.0 x16" if NVML knows it; else "PCIe".
std::string pcie_name(std::string const& bus);

/// "NVLink 18": the number of links that join two GPUs, directly or by switches. Empty if there are
/// none.
std::string nvlink_name(std::string const& bus, std::string const& peer);

/// Version of NVIDIA's driver, empty without NVML.
std::string driver_version();

}  // namespace meshpost::fabric
