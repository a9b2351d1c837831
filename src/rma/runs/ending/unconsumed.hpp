#pragma once
#include <vector>

#include "meshpost/rma/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// What the ranks of this process's devices found in their counters at the end of run number `run`,
/// which has just ended, in the order of windows, ranks and tags: the first `most`; counts the
/// rest.
/// \throws Error(device_failed)
std::vector<Unconsumed> read_unconsumed(WorldState& world, u32 run, u64 most, u64& left_out);

}  // namespace meshpost::detail
