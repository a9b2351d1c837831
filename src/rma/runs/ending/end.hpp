#pragma once
#include <vector>

#include "meshpost/rma/run_state.hpp"
#include "rma/world_state.hpp"

// The remaining work when a run's ranks have ended.

namespace meshpost::detail {

/// Warns of unconsumed notifications.
void report_unconsumed(WorldState const& world, RunRecord const& record);

/// Seconds of each timed interval of run number `run`, by own device. `states`: those of own
/// devices.
std::vector<std::vector<double>> collect_timings(WorldState& world,
                                                 std::vector<RunState> const& states, u32 run);

/// After a run that failed anywhere. Ranks may have left anything behind, if they were ended
/// half-way, or others had sent to them before they began. Throws nothing: memory that it can't
/// clear is on a device that is broken already.
/// `last`: the number of the last run that had begun.
void clean_up_after_failure(WorldState& world, std::vector<RunState> const& states, u32 last);

}  // namespace meshpost::detail
