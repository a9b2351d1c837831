#pragma once
#include "participants.hpp"

namespace meshpost::gemm {

/// The place of a device among those of all processes.
struct Site {
  std::string host, bus, memory;  ///< memory: DeviceMemory::id
};

/// An owner's link to a device, as far as the device's process knows it.
struct LinkFrom {
  bool same_memory = false, same_host = true, same_numa_node = true;
  double rate = 0;  ///< bytes/s; 0: not known
};

/// Distances of owners to one device. Owners in the same memory have distance 0. Links with known
/// rates follow, the fastest first; a rate counts as lower if it is below 3/4 of the fastest of its
/// class, since measurements vary. Then come unknown links: in the NUMA node, in the host, beyond.
std::vector<u32> distances_from(std::vector<LinkFrom> const& links);

/// Of all devices, by the machine's measured links. Collective over the processes. `peer`: GPUs may
/// open their memory to each other, as measuring does. Otherwise links between the GPUs of a
/// process are not known.
std::vector<std::vector<u32>> all_distances(Participants const& all, std::vector<Site> const& sites,
                                            bool peer);

}  // namespace meshpost::gemm
