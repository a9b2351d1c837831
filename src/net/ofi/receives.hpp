#pragma once
#include <memory>
#include <span>
#include <vector>

#include "net/ofi/memory.hpp"

// Buffers for arriving messages.

namespace meshpost::net::ofi {

class Receives {
 public:
  /// Posts buffers for messages of up to `most` bytes.
  Receives(fid_ep* endpoint, Memory& memory, bool multi, u64 most);

  bool owns(void const* context) const;
  /// The bytes of a message of `size` bytes. They lie at `reported` (by the queue) if a buffer
  /// takes many messages. The queue passes on a size from the network, which may be wrong: never
  /// returns more than the buffer has.
  std::span<char const> bytes(void const* context, void const* reported, u64 size) const;
  /// Gives the buffer back to the provider, as soon as that has room.
  void post(void const* context);
  /// Posts the buffers that could not be posted before.
  void retry();

 private:
  bool try_post(u64 buffer);

  fid_ep* endpoint_;
  bool multi_;
  u64 most_;  // of a message
  u64 size_;  // of each buffer
  std::unique_ptr<char[]> memory_;
  void* descriptor_ = nullptr;
  std::vector<fi_context2> contexts_;
  std::vector<u64> waiting_;
};

}  // namespace meshpost::net::ofi
