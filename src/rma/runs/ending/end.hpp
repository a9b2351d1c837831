#pragma once
#include <vector>

#include "meshpost/rma/run_state.hpp"
#include "rma/world_state.hpp"

// What is left to do when a run's ranks have ended.

namespace meshpost::detail {

/// Warns of notifications that nobody consumed.
void report_unconsumed(WorldState const& world, RunRecord const& record);

/// Seconds of each timed interval of run number `run`, by own device. `states`: of these.
std::vector<std::vector<double>> collect_timings(WorldState& world,
                                                 std::vector<RunState> const& states, u32 run);

/// After a run that failed, wherever it did: ranks that were ended half-way, or that others had
/// sent to before theirs began, may have left anything behind. Throws nothing; what it can't clear
/// is on a device that is broken already.
/// `last`: the number of the last run that had begun.
void clean_up_after_failure(WorldState& world, std::vector<RunState> const& states, u32 last);

}  // namespace meshpost::detail
