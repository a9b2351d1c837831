#pragma once
#include "meshpost/device/block.hpp"
#include "meshpost/rma/detail/via/proxy/packed_signal.hpp"

// What ranks ask the host's proxy to do, for ranks out of reach of loads and stores.

namespace meshpost {

/// One request. Addresses of others' memory are as in the symmetric heap of this process, where
/// nothing is mapped: the proxy turns them into a device and an offset.
struct ProxyRequest {
  enum class Type : u32 {
    put,    ///< `bytes` at `source` (or `data`) to `target`; then, if `counter`, raise it
    get,    ///< `bytes` at `source`, which is another's, to `target`, which is this process's
    add,    ///< `value` to the word of 4 bytes at `target`
    store,  ///< the lower `bytes` of `value` to the word at `target`, whole
  };
  static constexpr u64 most_inline = 128;

  Type type = Type::put;
  u32 rank = 0;        ///< who asks
  u32 local_rank = 0;  ///< on its device
  bool waits = false;  ///< it is told when the source has been read, or the target filled
  void* target = nullptr;
  void const* source = nullptr;
  u64 bytes = 0;
  u32* counter = nullptr;
  u32* sender = nullptr;  ///< word that says who raised the counter last
  u64 value = 0;
};

struct RequestRecord {
  PackedSignal signal;  ///< ready: slot number + 1 once the record is whole; if a notification is
                        ///< all it asks for, that, by rank `number`, and `post` says nothing
  ProxyRequest request;
  char data[ProxyRequest::most_inline];  ///< the source of a short put: it may change at once
};

/// A device's requests: a ring that its ranks fill and the proxy empties while they run.
/// `records` null: all ranks are in reach.
struct RequestRing {
  RequestRecord* records = nullptr;
  u32* head = nullptr;      ///< next slot, in the device's memory
  u32* tail = nullptr;      ///< slots that the proxy has emptied, in memory of both
  u32* seen = nullptr;      ///< a value of *tail, in the device's memory
  u32* done = nullptr;      ///< by local rank: requests with `waits` that are done
  u8 const* far = nullptr;  ///< by device of the world: whether it is out of reach; likewise
  /// GPUs, by local rank: `stage_bytes` for what the host can't reach (scratch) on its way to it
  char* stages = nullptr;
  static constexpr u64 stage_bytes = u64{16} << 10;
  static constexpr u32 capacity = 1024;
};

}  // namespace meshpost
