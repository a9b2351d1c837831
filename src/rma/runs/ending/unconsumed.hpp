#pragma once
#include <vector>

#include "meshpost/rma/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// The notifications that the ranks of this process's devices found in their counters at the end of
/// run number `run`, which has just ended. Returns the first `most`, in the order of windows, ranks
/// and tags; counts the rest.
/// \throws Error(device_failed)
std::vector<Unconsumed> read_unconsumed(WorldState& world, u32 run, u64 most, u64& left_out);

}  // namespace meshpost::detail
