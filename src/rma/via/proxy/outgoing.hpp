#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rma/via/access.hpp"
#include "rma/via/proxy/message.hpp"

namespace meshpost::detail {

/// What is to be sent, in as many messages as it takes. Bytes are copied out of the ranks' memory,
/// as a rank may be ended before the network has read it; but many bytes of the heap, which
/// outlives ranks, stay where they are, and those of a device that the engine reads itself.
struct Outgoing {
  ProxyMessage message;
  std::string copy{};
  char const* source = nullptr;  ///< in the heap, or what is kept; null: copy
  std::optional<u32> device{};   ///< own one, in whose memory it is: only the engine reads it
  Keep keep{};
  bool ready = true;  ///< its bytes are here
  u64 size = 0;       ///< of them, then
  u64 sent = 0;
  u64 written = 0;            ///< that the engine has begun to write, but no message tells of,
  u64 sum = 0;                ///< of them,
  std::optional<u32> slot{};  ///< to it; none: to the window
  u32 reading = 0;            ///< operations of the engine that read the source
  u32* done = nullptr;        ///< to raise when it has been read
  u64 holds = 0;
  u64& held;
  ~Outgoing() { held -= holds; }
  std::string_view rest() const { return {(source ? source : copy.data()) + sent, size - sent}; }
};
using OutgoingPtr = std::shared_ptr<Outgoing>;

}  // namespace meshpost::detail
