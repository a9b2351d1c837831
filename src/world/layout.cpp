#include "meshpost/world/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "meshpost/base/error.hpp"
#include "meshpost/device/backend.hpp"
#include "world/groups.hpp"

namespace meshpost {

bool Layout::any_far() const {
  for (u32 own = 0; own < own_count(); ++own)
    for (u32 device = 0; device < device_count(); ++device)
      if (far(own, device)) return true;
  return false;
}

bool Layout::far_from(u32 process) const {
  for (u32 own = 0; own < own_count(); ++own)
    for (u32 device = 0; device < device_count(); ++device)
      if (!owns(device) && processes[device] == process && far(own, device)) return true;
  return false;
}

bool Layout::is_reached_elsewhere(u32 device) const {
  for (u32 other = 0; other < device_count(); ++other)
    if (processes[other] != processes[device] && domains[other] == domains[device]) return true;
  return false;
}

bool Layout::is_mapped_elsewhere(u32 device) const {
  // Processes without devices map memory of the host too.
  return traits[device].in_host_memory || is_reached_elsewhere(device);
}

std::optional<u32> Layout::neighbour(u32 device) const {
  if (owns(device)) return device - first_device;
  for (u32 one = 0; one < own_count(); ++one)
    if (!far(one, device)) return one;
  return std::nullopt;
}

std::vector<u32> domains_of(std::vector<std::shared_ptr<Device>> const& devices) {
  return groups_that_fit(static_cast<u32>(devices.size()),
                         [&](u32 from, u32 to) { return reaches(devices[from], devices[to]); });
}

Layout make_layout(std::string const& spec, u32 ranks, bool apart) {
  Layout layout;
  layout.devices = open_devices(spec);
  layout.ranks_per_device = ranks;
  u32 usual = ~0u;  // the lowest of all devices, for each kind
  for (auto const& device : layout.devices) {
    layout.names.push_back(device->name());
    layout.traits.push_back(traits_of(device->kind()));
    usual = std::min(usual, device->info().default_ranks);
  }
  layout.processes.resize(layout.devices.size());
  layout.domains = domains_of(layout.devices);
  if (apart) std::iota(layout.domains.begin(), layout.domains.end(), 0);
  choose_ranks(layout, usual);
  return layout;
}

void choose_ranks(Layout& layout, u32 usual) {
  constexpr u32 most = 65536;  // ranks of a device; a GPU has far fewer blocks resident
  if (layout.ranks_per_device > most)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} ranks a device were asked for", layout.ranks_per_device),
                fmt::format("use at most {}", most));
  // Other kinds have processors of their own.
  bool const on_cores = std::ranges::all_of(layout.traits, &DeviceTraits::on_host_cores);
  if (layout.ranks_per_device == 0)
    layout.ranks_per_device = on_cores ? std::max(16u, usual / layout.device_count()) : usual;
  // RunState::device_of multiplies instead of dividing.
  if (u64 const ranks_in_all = u64{layout.ranks_per_device} * layout.device_count();
      ranks_in_all * layout.ranks_per_device >> 32 != 0)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} ranks on each of {} devices were asked for",
                            layout.ranks_per_device, layout.device_count()),
                fmt::format("use at most {} ranks a device",
                            static_cast<u64>(std::sqrt(4294967295.0 / layout.device_count()))));
}

}  // namespace meshpost
