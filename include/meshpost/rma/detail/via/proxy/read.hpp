#pragma once
#include "meshpost/rma/detail/via/proxy/request.hpp"

namespace meshpost::via::proxy {

/// By all threads; complete when it returns.
MESHPOST_FN inline void read(Sender& self, Operation operation, void* target, void const* source,
                             u64 bytes) {
  post(self, operation,
       {.type = ProxyRequest::Type::get, .target = target, .source = source, .bytes = bytes});
}

}  // namespace meshpost::via::proxy
