#pragma once
#include "meshpost/rma/detail/via/sender.hpp"

namespace meshpost::via::direct {

/// By all threads, each a share.
MESHPOST_FN inline void read(Sender const& self, void* target, void const* source, u64 bytes) {
  if (target != source) memory::copy(target, source, bytes, self.thread(), self.threads());
}

}  // namespace meshpost::via::direct
