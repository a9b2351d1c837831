#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/rma/detail/via/message.hpp"

namespace meshpost::detail {

/// The header that one proxy sends another by a net::Channel, before the bytes: a message, and how
/// it travels. The message's places are offsets in its device's part of the symmetric heap.
struct WireMessage {
  static constexpr u32 message_kind = 1;  ///< of the channel's
  static constexpr u32 nowhere = ~u32{0};
  using Type = via::Message::Type;
  /// The place of a put's or an answer's bytes, if they don't lie behind it. The engine has written
  /// them to their place, or to a slot for bytes that are copied on from there (Staging).
  enum class Written : u32 { no, to_window, to_slot };

  via::Message message{};
  u32 run = 0;
  Written written = Written::no;
  u32 slot = 0;
  u32 freed = 0;      ///< slots written in the other direction and let go of; wraps
  u32 completed = 0;  ///< messages of the other direction that can change no window any more; wraps
  u32 own_device = nowhere;  ///< get: device of via::Message::own, if that is in the symmetric heap
  u64 sum = 0;               ///< sum_of() written bytes; 0: not computed
  // get and answer: the get's number at its sender, and the bytes' position in its target
  u64 request = 0, position = 0;

  /// True if the message has bytes of its own; else its size is what a get wants.
  bool has_bytes() const { return message.type <= Type::store || message.type == Type::answer; }
  /// True if it changes memory at a known place: a store, a put, or the answer to a get into the
  /// heap.
  bool changes_windows() const { return has_bytes() && message.device != nowhere; }
};
static_assert(sizeof(WireMessage) == 96);
static_assert(std::has_unique_object_representations_v<WireMessage>);  // all its bytes are sent

/// A number that is the same for other bytes once in 2^64 (XXH3); never 0.
u64 sum_of(std::string_view bytes);

/// \throws Error(peer_lost): the received message can't be one that was sent
[[noreturn]] void refuse_message(std::string cause);

}  // namespace meshpost::detail
