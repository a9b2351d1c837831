#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/rma/detail/via/message.hpp"
#include "net/channel.hpp"

namespace meshpost::detail {

/// What one proxy sends another by a net::Channel, before the bytes: a message, whose places are
/// offsets in its device's part of the symmetric heap, and how it travels.
struct Parcel {
  static constexpr u32 message_kind = 1;  ///< of the channel's
  static constexpr u32 nowhere = ~u32{0};
  using Kind = via::Message::Kind;
  /// Where the bytes of a put or an answer are, if they don't lie behind it: the engine has written
  /// them to their place, or to a slot for bytes that go on from there (Staging).
  enum class Written : u32 { no, to_window, to_slot };

  via::Message message{};
  u32 run = 0;
  Written written = Written::no;
  u32 slot = 0;
  u32 freed = 0;    ///< slots that were written the other way and let go of; wraps
  u32 settled = 0;  ///< parcels that came the other way and can change no window any more; wraps
  u32 own_device = nowhere;  ///< get: of via::Message::own, if it lies in the symmetric heap
  u64 sum = 0;               ///< sum_of() bytes that are written; 0: nobody has computed it
  // get and answer: the asker's number for it, and where in its target the bytes belong
  u64 request = 0, position = 0;

  /// Whether the message's bytes are its own; else they say how many a get wants.
  bool has_bytes() const { return message.kind <= Kind::store || message.kind == Kind::answer; }
  /// Where it does is known: a store, a put, or the answer to a get into the heap.
  bool changes_windows() const { return has_bytes() && message.device != nowhere; }
};
static_assert(sizeof(Parcel) == 96);
static_assert(std::has_unique_object_representations_v<Parcel>);  // all its bytes are sent

/// A number that other bytes would have once in 2^64 (XXH3); never 0.
u64 sum_of(std::string_view bytes);

/// \throws Error(peer_lost): what came can't be what was sent
[[noreturn]] void refuse_parcel(std::string cause);

/// What a message holds, if it can be carried out where there is a device with such memory. Bytes
/// are not looked at. \throws Error(peer_lost)
Parcel read_parcel(net::Channel::Message const& message);

}  // namespace meshpost::detail
