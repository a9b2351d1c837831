#pragma once
#include "meshpost/rma/run_state.hpp"

// Unconsumed notifications at the end of a run (run_end.hpp).

namespace meshpost::detail {

MESHPOST_FN inline RunWords* words_on(RunState const& state, u32 device) {
  return reinterpret_cast<RunWords*>(state.heap + device * state.stride + state.words);
}

/// Notes unconsumed counts; by one thread.
MESHPOST_COLD inline void note_left(RunState const& state, u32 const* word, u32 count) {
  char* const device = state.heap + state.device * state.stride;
  RunWords* const words = words_on(state, state.device);
  u32 const index = memory::fetch_add_device(&words->left, 1);
  if (index >= RunWords::most_left) return;
  auto* const list = reinterpret_cast<LeftCount*>(device + words->left_counts);
  list[index] = {static_cast<u64>(reinterpret_cast<char const*>(word) - device), count, 0};
}

}  // namespace meshpost::detail
