#pragma once
#include "meshpost/rma/detail/via/proxy/write.hpp"

namespace meshpost::via::proxy {

/// By all threads; complete when it returns.
MESHPOST_FN inline void read(Sender& self, Operation operation, void* target, void const* source,
                             u64 bytes) {
  request(self, operation,
          {.address = reinterpret_cast<u64>(source),
           .bytes = bytes,
           .own = reinterpret_cast<u64>(target),
           .type = Message::Type::get});
}

}  // namespace meshpost::via::proxy
