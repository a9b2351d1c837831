#pragma once
#include "meshpost/device/detail/ring.hpp"
#include "meshpost/rma/detail/via/message.hpp"

// Requests of ranks to the host's proxy, for ranks out of reach of loads and stores.

namespace meshpost {

/// One request. Addresses of others' memory are as in the symmetric heap of this process, where
/// nothing is mapped. The proxy converts them into a device and an offset.
struct RequestRecord {
  via::Message message;  ///< a count alone: only the first 16 bytes are written (via::Signal::more)
  u32 local_rank = 0;    ///< of the sender, on its device
  u32 waits = 0;         ///< 1: `done` counts it when its source is read, or its target filled

  MESHPOST_FN u32* flag() { return &message.signal.ready; }
};

/// A device's requests: a ring that its ranks fill and the proxy empties while they run.
/// `records` null: all ranks are in reach.
struct RequestRing : detail::RingOfRanks<RequestRecord, 1024> {
  /// The sources of puts that fit in: they may change at once. In memory of both.
  via::MessageBytes<capacity> bytes{};
  u32* done = nullptr;      ///< by local rank: number of finished requests with `waits`
  u8 const* far = nullptr;  ///< by device of the world: 1 if out of reach of loads and stores
  /// GPUs, by local rank: `stage_bytes` each, to stage data that the host can't reach (scratch)
  char* stages = nullptr;
  static constexpr u64 stage_bytes = u64{16} << 10;
};

}  // namespace meshpost
