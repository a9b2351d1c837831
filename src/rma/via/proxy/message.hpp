#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/base/types.hpp"
#include "net/channel.hpp"

namespace meshpost::detail {

/// What one proxy sends another by a net::Channel, before the bytes. Places are a device of the
/// world and an offset in its part of the symmetric heap.
struct ProxyMessage {
  static constexpr u32 message_kind = 1;  ///< of the channel's
  static constexpr u32 nowhere = ~u32{0};
  enum class Type : u32 { put, add, store, get, answer, news, count };
  /// Where the bytes of a put or an answer are, if they don't lie behind it: the engine has written
  /// them to their place, or to a slot for bytes that go on from there (Staging).
  enum class Written : u32 { no, to_window, to_slot };

  u32 run = 0;
  Type type = Type::put;
  u32 device = 0;
  Written written = Written::no;
  u64 offset = 0;
  u64 bytes = 0;  ///< of a put, a store, an answer, or of what a get wants
  u32 slot = 0;
  u32 freed = 0;      ///< slots that were written the other way and let go of; wraps
  u32 completed = 0;  ///< messages that came the other way and can change no window any more; wraps
  u32 sender = 0;     ///< rank, plus one
  u64 sum = 0;        ///< sum_of() bytes that are written; 0: nobody has computed it
  u64 value = 0;
  // put: the counter to raise when its last bytes are there; 0: none
  u64 counter = 0, sender_word = 0;
  // get and answer: the asker's number for it, and where in its target the bytes belong
  u64 request = 0, position = 0;
  u64 target = 0;
  u32 target_device = nowhere;  ///< get: the target, if it lies in the symmetric heap
  u32 unused = 0;

  /// Whether `bytes` are its own; else they say how many a get wants.
  bool has_bytes() const { return type == Type::put || type == Type::answer; }
  /// Where it does is known: a store, a put, or the answer to a get into the heap.
  bool changes_windows() const { return (has_bytes() || type == Type::store) && device != nowhere; }
};
static_assert(std::has_unique_object_representations_v<ProxyMessage>);  // all its bytes are sent

/// A number that other bytes would have once in 2^64 (XXH3); never 0.
u64 sum_of(std::string_view bytes);

/// \throws Error(peer_lost): what came can't be what was sent
[[noreturn]] void refuse_message(std::string cause);

/// What a message holds, if it can be carried out where there is a device with such memory. Bytes
/// are not looked at. \throws Error(peer_lost)
ProxyMessage read_message(net::Channel::Message const& received);

}  // namespace meshpost::detail
