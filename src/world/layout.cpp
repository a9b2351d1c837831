#include "meshpost/world/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/base/error.hpp"

namespace meshpost {

Layout make_layout(std::string const& spec, u32 ranks) {
  Layout layout{open_devices(spec), ranks};
  constexpr u32 most = 65536;  // ranks of a device; a GPU has far fewer blocks resident
  if (ranks > most)
    throw Error(Kind::bad_argument, "World", fmt::format("{} ranks a device were asked for", ranks),
                fmt::format("use at most {}", most));
  if (ranks == 0) {
    u32 const each = layout.devices.front()->info().default_ranks;
    // CPU devices share the cores of the host; GPUs have their own multiprocessors.
    bool const shared = layout.devices.front()->kind() == "cpu";
    layout.ranks_per_device = shared ? std::max(16u, each / layout.device_count()) : each;
  }
  // RunState::device_of divides by multiplication.
  if (u64 const ranks_in_all = u64{layout.ranks_per_device} * layout.device_count();
      ranks_in_all * layout.ranks_per_device >> 32 != 0)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} ranks on each of {} devices were asked for",
                            layout.ranks_per_device, layout.device_count()),
                "use fewer ranks a device");
  return layout;
}

}  // namespace meshpost
