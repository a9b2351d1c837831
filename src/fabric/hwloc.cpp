#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "fabric/topology.hpp"
#include "fabric/whole_host.hpp"

namespace meshpost::fabric {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {nullptr, hwloc_topology_destroy};
  Topology topology(raw, hwloc_topology_destroy);
  // Buses and the devices on them. Plugins that look inside devices would start their drivers.
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  for (char const* const plugin : {"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi"})
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
  if (hwloc_topology_load(raw) != 0) topology.reset();
  return topology;
}

// Only read once it is loaded; hwloc allows that to several threads. Outlives main.
hwloc_topology_t host() {
  static auto* const one = new Topology(load_topology());
  return one->get();
}

std::vector<NumaNode> find_nodes() {
  std::vector<NumaNode> nodes;
  if (!host()) return {whole_host()};
  for (hwloc_obj_t at = nullptr;
       (at = hwloc_get_next_obj_by_type(host(), HWLOC_OBJ_NUMANODE, at)) != nullptr;) {
    if (at->attr->numanode.local_memory == 0) continue;
    NumaNode node{at->os_index, Bytes{at->attr->numanode.local_memory}, {}};
    if (at->cpuset)
      for (int core = hwloc_bitmap_first(at->cpuset); core >= 0;
           core = hwloc_bitmap_next(at->cpuset, core))
        node.cores.push_back(static_cast<u32>(core));
    nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  if (nodes.empty()) nodes.push_back(whole_host());
  return nodes;
}

}  // namespace

std::vector<NumaNode> const& numa_nodes() {
  static auto const& nodes = *new auto(find_nodes());  // copies may be made after main
  return nodes;
}

std::optional<u32> node_of_bus(std::string const& bus) {
  if (!host() || bus.empty()) return std::nullopt;
  auto const* const device = hwloc_get_pcidev_by_busidstring(host(), bus.c_str());
  if (!device) return std::nullopt;
  auto const* const above = hwloc_get_non_io_ancestor_obj(host(), const_cast<hwloc_obj_t>(device));
  if (!above || !above->nodeset) return std::nullopt;
  int const node = hwloc_bitmap_first(above->nodeset);
  // A bus that belongs to the whole of a host with several nodes is near none of them.
  if (node < 0 || (hwloc_bitmap_weight(above->nodeset) != 1 && numa_nodes().size() > 1))
    return std::nullopt;
  return static_cast<u32>(node);
}

}  // namespace meshpost::fabric
