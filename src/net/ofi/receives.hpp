#pragma once
#include <memory>
#include <span>
#include <vector>

#include "net/ofi/memory.hpp"

// Buffers that messages arrive in.

namespace meshpost::net::ofi {

class Receives {
 public:
  /// Posts buffers for messages of up to `most` bytes.
  Receives(fid_ep* endpoint, Memory& memory, bool multi, u64 most);

  bool owns(void const* context) const;
  /// The bytes of a message of `size` bytes: where the queue has `reported`, if buffers take many.
  /// The queue repeats a size that came through the network: of one that is not possible, only what
  /// the buffer has.
  std::span<char const> bytes(void const* context, void const* reported, u64 size) const;
  /// The buffer is given back to the provider, as soon as that has room.
  void post(void const* context);
  /// Those that could not be posted before.
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
