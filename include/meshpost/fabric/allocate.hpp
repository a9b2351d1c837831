#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/fabric/place.hpp"

namespace meshpost {

/// Memory of that place: a device's own, or on that NUMA node. If the place is pinned memory, it is
/// pinned for these devices. Pages of host memory are touched, so that they lie on the right node,
/// and hold 0. Thread-safe.
/// \throws Error(bad_argument) if the place is a device that is not among `devices`, or there are
/// none; Error(out_of_memory)
Allocation allocate_at(Place const& place, std::vector<std::shared_ptr<Device>> const& devices,
                       Bytes size);

}  // namespace meshpost
