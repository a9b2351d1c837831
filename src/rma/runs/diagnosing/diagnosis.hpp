#pragma once
#include "rma/runs/diagnosing/failed_run_state.hpp"

namespace meshpost::detail {

/// A run that did not end by itself.
struct EndedRun {
  WorldState& world;
  RunRecord const& record;
  FailedRunState const& failed_state;
  std::chrono::milliseconds deadline;
};

/// Why it ended: the rank that failed, or the ranks that wait and for whom.
Error diagnose(EndedRun const& run, Reason reason);

}  // namespace meshpost::detail
