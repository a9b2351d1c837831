#include "meshpost/world/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/base/error.hpp"

namespace meshpost {

Layout make_layout(std::string const& spec, u32 ranks) {
  Layout layout;
  layout.devices = open_devices(spec);
  layout.ranks_per_device = ranks;
  layout.kind = layout.devices.front()->kind();
  for (auto const& device : layout.devices) layout.names.push_back(device->name());
  layout.processes.resize(layout.devices.size());
  choose_ranks(layout, layout.devices.front()->info().default_ranks);
  return layout;
}

void choose_ranks(Layout& layout, u32 usual) {
  constexpr u32 most = 65536;  // ranks of a device; a GPU has far fewer blocks resident
  if (layout.ranks_per_device > most)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} ranks a device were asked for", layout.ranks_per_device),
                fmt::format("use at most {}", most));
  // CPU devices share the cores of the host; GPUs have their own multiprocessors.
  if (layout.ranks_per_device == 0)
    layout.ranks_per_device =
        layout.kind == "cpu" ? std::max(16u, usual / layout.device_count()) : usual;
  // RunState::device_of divides by multiplication.
  if (u64 const ranks_in_all = u64{layout.ranks_per_device} * layout.device_count();
      ranks_in_all * layout.ranks_per_device >> 32 != 0)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} ranks on each of {} devices were asked for",
                            layout.ranks_per_device, layout.device_count()),
                "use fewer ranks a device");
}

}  // namespace meshpost
