#pragma once
#include "meshpost/rma/detail/via/proxy/write.hpp"

namespace meshpost::via::proxy {

/// A word, whole; by all threads.
template <class T>
MESHPOST_FN void store(Sender& self, Operation operation, T* word, T value) {
  u64 bits = 0;
  memory::copy(&bits, &value, sizeof(T), 0, 1);
  request(self, operation,
          {.address = reinterpret_cast<u64>(word),
           .bytes = sizeof(T),
           .own = bits,
           .type = Message::Type::store});
}

}  // namespace meshpost::via::proxy
