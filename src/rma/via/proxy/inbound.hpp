#pragma once
#include <map>

#include "net/channel.hpp"
#include "rma/via/proxy/outbound.hpp"

namespace meshpost::detail {

/// Reads a header and checks that a device with such memory can carry out its message. Does not
/// check the bytes. \throws Error(peer_lost)
WireMessage read_message(net::Channel::Message const& message);

/// Carries out messages for devices of this process, from any sender. One thread at a time.
class Inbound : WorldMemory {
 public:
  Inbound(WorldMemory const& memory, OwnDevices& own, Outbound& outbound)
      : WorldMemory(memory), own_(own), outbound_(outbound) {}

  void carry_out(u32 from, WireMessage const& wire, Payload const& payload);

  /// A get that waits for its answer.
  struct Get {
    u32 own = 0;          ///< device of the sender
    u32* done = nullptr;  ///< to raise at its end
    char* target = nullptr;
    u64 size = 0, left = 0;  ///< bytes in all, and still to come
  };
  /// Returns its number.
  u64 await(Get const& get);
  bool awaits_nothing() const { return gets_.empty(); }
  void forget_all() { gets_.clear(); }

 private:
  void see_window(WireMessage const& wire) const;
  void answer_get(u32 from, WireMessage const& wire);
  void take_answer(WireMessage const& wire, Payload const& payload);
  char* own_memory(u32 device, u64 offset, u64 bytes) const;

  OwnDevices& own_;
  Outbound& outbound_;
  std::map<u64, Get> gets_;
  u64 next_get_ = 0;
};

}  // namespace meshpost::detail
