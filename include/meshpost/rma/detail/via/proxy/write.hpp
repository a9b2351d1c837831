#pragma once
#include "meshpost/device/strided_copy.hpp"
#include "meshpost/rma/detail/via/proxy/request.hpp"

namespace meshpost::via::proxy {

/// By all threads. `counter`, if any, is raised when the bytes are there.
MESHPOST_FN inline void write(Sender& self, Operation operation, void* target, void const* source,
                              u64 bytes, u32* counter = nullptr, u32* raised_by = nullptr) {
  post(self, operation,
       {.target = target,
        .source = source,
        .bytes = bytes,
        .counter = counter,
        .sender = raised_by});
}

/// A strided put, run by run; by all threads. The rank waits once, for all of them. Where runs are
/// short and lie side by side at the target, a request has as many as it can hold.
MESHPOST_FN inline void write(Sender& self, Operation operation, StridedCopy const& copy) {
  if (copy.run > ProxyRequest::most_inline) {
    if (!memory::host_reaches(copy.source))
      return copy.each_run([&](char* target, char const* source) {
        write(self, operation, target, source, copy.run);
      });
    if (self.thread() == 0)
      copy.each_run([&](char* target, char const* source) {
        post_alone(self, {.target = target, .source = source, .bytes = copy.run});
      });
    self.posted_ += static_cast<u32>(copy.runs());
    await_posted(self, operation);
    return;
  }
  if (self.thread() != 0) return;
  char packed[ProxyRequest::most_inline];
  ProxyRequest request{.source = packed};
  auto const send = [&] {
    if (request.bytes != 0) post_alone(self, request);
  };
  copy.each_run([&](char* target, char const* source) {
    bool const follows = target == static_cast<char*>(request.target) + request.bytes;
    if (!follows || request.bytes + copy.run > ProxyRequest::most_inline) {
      send();
      request.target = target;
      request.bytes = 0;
    }
    memory::copy(packed + request.bytes, source, copy.run, 0, 1);
    request.bytes += copy.run;
  });
  send();
}

}  // namespace meshpost::via::proxy
