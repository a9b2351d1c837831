#pragma once
#include "rma/counter_snapshot.hpp"
#include "rma/watch.hpp"

namespace meshpost::detail {

/// A run that did not end by itself.
struct EndedRun {
  WorldState& world;
  RunRecord const& record;
  std::vector<Grid> const& grids;
  CounterSnapshot const& counters;
  std::chrono::milliseconds deadline;
};

/// Why it ended: the rank that failed, or who waits for whom.
Error diagnose(EndedRun const& run, Ending const& ending);

}  // namespace meshpost::detail
