#include "meshpost/fabric/allocate.hpp"

#include <algorithm>
#include <cstring>

#include "fabric/numa.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {

Allocation allocate_at(Place const& place, std::vector<std::shared_ptr<Device>> const& devices,
                       Bytes size) {
  auto const refuse = [&](std::string const& cause) {
    throw Error(Kind::bad_argument, "allocate at " + place.name(), cause,
                "give the devices that the place is meant for");
  };
  if (devices.empty()) refuse("no devices are given");
  if (!place.on_host()) {
    auto const device = std::ranges::find_if(
        devices, [&](auto const& one) { return physical(one)->name() == place.name(); });
    if (device == devices.end()) refuse("it is not among the devices given");
    return (*device)->allocate(size, MemoryKind::device);
  }
  // For devices in the host's memory all host memory is alike. Other devices can pin it.
  auto const pins = std::ranges::find_if_not(devices, &Device::in_host_memory);
  auto& device = pins != devices.end() ? *pins : devices.front();
  fabric::OnNode const node(place.number);
  auto memory =
      device->allocate(size, place.kind == "pinned" ? MemoryKind::pinned : MemoryKind::pageable);
  if (size != 0) std::memset(memory.data(), 0, size);  // done by this thread, which is on the node
  return memory;
}

}  // namespace meshpost
