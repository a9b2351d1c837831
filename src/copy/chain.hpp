#pragma once
#include <algorithm>
#include <atomic>

#include "copy/request.hpp"
#include "meshpost/copy/route.hpp"

namespace meshpost::copying {

/// The bytes of one copy that several chains share. Each chain claims its next chunk when it has
/// room for it. So chains that are slower than planned take less, and all end together.
class Share {
 public:
  explicit Share(u64 size) : size_(size) {}
  struct Piece {
    u64 offset, size;  // size 0: nothing is left
  };
  Piece claim(u64 chunk) {
    u64 const offset = stopped_ ? size_ : next_.fetch_add(chunk, std::memory_order_relaxed);
    if (offset >= size_) return {size_, 0};
    return {offset, std::min(chunk, size_ - offset)};
  }
  /// From now on nothing more is claimed.
  void stop() { stopped_ = true; }

 private:
  u64 size_;
  std::atomic<u64> next_{0};
  std::atomic<bool> stopped_{false};
};

/// Takes chunks of a copy along a chain until none is left. A few are in progress at once, each in
/// its own buffers: while one is on a link, the next is on the link before it. Returns when all
/// chunks that it claimed have arrived. \throws Error(device_failed), Error(out_of_memory); then
/// none of them is in progress any more.
void run_chain(Machine const& machine, Chain const& chain, Request const& request, Share& share);

}  // namespace meshpost::copying
