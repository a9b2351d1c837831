#pragma once
#include "meshpost/rma/detail/via/proxy/write.hpp"

namespace meshpost::via::proxy {

/// By all threads.
MESHPOST_FN inline void raise(Sender& self, Operation operation, Signal const& count) {
  request(self, operation, {.signal = count});
}

/// Adds to a word of 4 bytes, or to the lower half of one of 8; by one thread.
MESHPOST_FN inline void raise(RunState const& state, Block block, void const* word, u32 by) {
  request(state.requests, block, 0, {.signal = Signal::of(static_cast<u32 const*>(word), 0, by)});
}

}  // namespace meshpost::via::proxy
