#pragma once
#include "meshpost/rma/detail/via/proxy/request.hpp"

namespace meshpost::via::proxy {

/// By all threads.
MESHPOST_FN inline void raise(Sender& self, Operation operation, Location const& to, u32* counter) {
  post(self, operation, {.counter = counter, .sender = to.beside(counter, WindowInfo::raised_by)});
}

/// Adds 1 to a word of 4 bytes, or to the lower half of one of 8; by one thread.
MESHPOST_FN inline void raise(RunState const& state, Block block, void* word, u32 by) {
  fill_record(state.requests, block,
              {.type = ProxyRequest::Type::add, .target = word, .value = by});
}

}  // namespace meshpost::via::proxy
