#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/device/core_slice.hpp"
#include "meshpost/trace/record.hpp"

namespace meshpost {

/// An operation's name in messages and on timelines.
std::string_view to_string(Operation operation);

/// One rank's row of a timeline.
struct TimelineRow {
  u32 device = 0;
  u32 rank = 0;                    ///< in the world
  std::vector<TraceEvent> events;  ///< in order; times in ns on the host's clock
  u64 lost = 0;                    ///< events that had no room
  std::vector<CoreSlice> cores{};  ///< times when it had a core; empty on GPUs
};

/// The timeline of a run, rank by rank. A plain value.
struct Timeline {
  std::string kernel;
  std::vector<std::string> devices;
  u64 begin = 0, end = 0;  ///< of the run, ns on the host's clock
  std::vector<TimelineRow> rows;
  u32 cores = 0;  ///< shared by the rows; 0: not known, or some of `TimelineRow::cores` is lost
};

/// The share of all cores' time in which ranks used them. Nothing if that is not known.
std::optional<double> cores_in_use(Timeline const& timeline);

/// The timeline in the trace event format, which Perfetto and Chrome load. A device is a process, a
/// rank is a thread; times are in us from the run's begin. The time between two operations is shown
/// as "compute". A rank that could continue but had no core is shown as "ready", within its
/// operation. `otherData` has "cores" and "cores_in_use".
std::string to_perfetto(Timeline const& timeline);

}  // namespace meshpost
