#pragma once
#include "meshpost/rma/detail/via/proxy/request.hpp"

namespace meshpost::via::proxy {

/// A word, whole; by all threads.
template <class T>
MESHPOST_FN void store(Sender& self, Operation operation, T* word, T value) {
  u64 bits = 0;
  memory::copy(&bits, &value, sizeof(T), 0, 1);
  post(self, operation,
       {.type = ProxyRequest::Type::store, .target = word, .bytes = sizeof(T), .value = bits});
}

}  // namespace meshpost::via::proxy
