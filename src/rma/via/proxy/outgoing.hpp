#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rma/via/access.hpp"
#include "rma/via/proxy/wire_message.hpp"

namespace meshpost::detail {

/// Bytes to be sent, in as many messages as necessary. Bytes are copied out of the ranks' memory,
/// because a rank may be ended before the network has read them. But many bytes of the heap, which
/// outlives ranks, stay in place. So do those of a device that the engine reads itself.
struct Outgoing {
  WireMessage wire;
  std::string copy{};
  char const* source = nullptr;  ///< in the heap, or kept; null: copy
  std::optional<u32> device{};   ///< own one whose memory has it: only the engine reads it
  Keep keep{};
  bool ready = true;  ///< its bytes are here
  u64 size = 0;       ///< of its bytes; of these:
  u64 sent = 0;
  u64 written = 0;            ///< bytes that the engine has begun to write, without a message yet
  u64 sum = 0;                ///< of the written bytes
  std::optional<u32> slot{};  ///< that they go to; none: the window
  u32 reading = 0;            ///< operations of the engine that read the source
  u32* done = nullptr;        ///< to raise when it has been read
  u64 holds = 0;
  u64& held;
  ~Outgoing() { held -= holds; }
  std::string_view rest() const { return {(source ? source : copy.data()) + sent, size - sent}; }
};
using OutgoingPtr = std::shared_ptr<Outgoing>;

}  // namespace meshpost::detail
