#pragma once
#include <string>
#include <vector>

#include "meshpost/device/core_slice.hpp"
#include "meshpost/rma/run_state.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost::detail {

/// A run whose ranks have recorded what they did.
struct TracedRun {
  std::string const& kernel;
  Layout const& layout;
  std::vector<RunState> const& states;   ///< of each of this process's devices
  std::vector<CoreRecord> const& cores;  ///< likewise; those of GPUs are empty
  u64 begin, end;                        ///< host clock
};

/// Writes the timeline of this process's ranks as Perfetto JSON; a file that can't be written is
/// warned of.
void write_timeline(std::string const& file, TracedRun const& run);

}  // namespace meshpost::detail
