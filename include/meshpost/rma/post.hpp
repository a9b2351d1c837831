#pragma once
#include "meshpost/device/detail/ring.hpp"
#include "meshpost/rma/detail/via/message.hpp"

// What ranks ask the host's proxy to do, for ranks out of reach of loads and stores.

namespace meshpost {

/// One request. Addresses of others' memory are as in the symmetric heap of this process, where
/// nothing is mapped: the proxy turns them into a device and an offset.
struct PostRecord {
  via::Message message;  ///< a count alone: only the first 16 bytes are written (via::Signal::more)
  u32 local_rank = 0;    ///< who asks, on its device
  u32 waits = 0;         ///< 1: it is told when the source has been read, or the target filled
  char data[via::Message::most_inline];  ///< the source of a short put: it may change at once

  MESHPOST_FN u32* flag() { return &message.signal.ready; }
};

/// A device's requests: a ring that its ranks fill and the proxy empties while they run.
/// `records` null: all ranks are in reach.
struct PostRing : detail::RingOfRanks<PostRecord, 1024> {
  u32* done = nullptr;      ///< by local rank: requests with `waits` that are done
  u8 const* far = nullptr;  ///< by device of the world: whether it is out of reach; likewise
  /// GPUs, by local rank: `stage_bytes` for what the host can't reach (scratch) on its way to it
  char* stages = nullptr;
  static constexpr u64 stage_bytes = u64{16} << 10;
};

}  // namespace meshpost
