#include "rma/run_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/trace/timeline.hpp"

namespace meshpost::detail {

void write_timeline(std::string const& file, TracedRun const& run) {
  auto const& layout = run.layout;
  Timeline timeline{run.kernel, layout.names, run.begin, run.end, {}, 0};
  std::map<Device const*, i64> offsets;  // of physical devices: one clock, aligned once
  for (u32 d = 0; d < layout.own_count(); ++d) {
    auto& device = *physical(layout.devices[d]);
    auto const& buffer = run.states[d].trace;
    auto const [aligned, first] = offsets.try_emplace(&device, 0);
    if (first) aligned->second = backend(device.kind()).clock_offset(device);
    i64 const offset = aligned->second;
    std::vector<u32> used(layout.ranks_per_device);
    device.read(used.data(), buffer.used, Bytes{used.size() * sizeof(u32)});
    for (u32 r = 0; r < used.size(); ++r) {
      u32 const number = layout.first_device + d;  // among those of all processes
      TimelineRow row{number, number * layout.ranks_per_device + r, {}, 0, {}};
      if (r < run.cores[d].ranks.size()) row.cores = run.cores[d].ranks[r];
      row.events.resize(std::min(used[r], buffer.capacity));
      row.lost = used[r] - row.events.size();
      device.read(row.events.data(), buffer.events + u64{r} * buffer.capacity,
                  Bytes{row.events.size() * sizeof(TraceEvent)});
      for (auto& event : row.events) {
        event.begin += static_cast<u64>(offset);
        if (event.end != 0) event.end += static_cast<u64>(offset);
      }
      timeline.rows.push_back(std::move(row));
    }
  }
  // GPUs beside them have no cores, and their rows none.
  if (std::ranges::all_of(run.cores, [](auto const& one) { return one.complete(); }))
    timeline.cores = run.cores.empty() ? 0 : run.cores.front().cores;
  std::ofstream out(file);
  out << to_perfetto(timeline);
  out.close();
  if (!out) warn(fmt::format("the timeline could not be written to '{}'; check the folder", file));
}

}  // namespace meshpost::detail
