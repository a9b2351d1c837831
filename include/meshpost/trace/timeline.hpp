#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/device/core_slice.hpp"
#include "meshpost/trace/record.hpp"

namespace meshpost {

/// What an operation is called in messages and on timelines.
std::string_view to_string(Operation operation);

/// One rank's row of a timeline.
struct TimelineRow {
  u32 device = 0;
  u32 rank = 0;                    ///< in the world
  std::vector<TraceEvent> events;  ///< in order; times in ns on the host's clock
  u64 lost = 0;                    ///< events for which there was no room
  std::vector<CoreSlice> cores{};  ///< when it had one; empty on GPUs
};

/// A run as it went, rank by rank. A plain value.
struct Timeline {
  std::string kernel;
  std::vector<std::string> devices;
  u64 begin = 0, end = 0;  ///< of the run, ns on the host's clock
  std::vector<TimelineRow> rows;
  u32 cores = 0;  ///< that the rows shared; 0: not known, or not all that they had is known
};

/// Which share of the time of all cores the ranks had one; nothing if that is not known.
std::optional<double> cores_in_use(Timeline const& timeline);

/// The timeline in the trace event format, which Perfetto and Chrome load: a process a device, a
/// thread a rank, times in us from the run's begin. What lies between two operations is shown as
/// "compute". A rank that could go on but had no core is shown as "ready", within the operation in
/// which that was. `otherData` has "cores" and "cores_in_use".
std::string to_perfetto(Timeline const& timeline);

}  // namespace meshpost
