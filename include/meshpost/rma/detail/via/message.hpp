#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

// A message, from the rank that sends it by the host to the counter that it raises. It is one
// value, in the addresses of its holder. A rank has its own device's addresses. The proxy converts
// them into a device and offsets in that device's memory. The proxy of that device converts these
// into its own addresses.

namespace meshpost::via {

/// A counter to raise, and the origin of the count, which is noted beside the counter. With the
/// flag of a ring it takes 16 bytes, which devices and hosts store and load at once over the bus.
struct alignas(16) Signal {
  /// The counter's address or offset. The upper 16 bits hold the distance from it to the word for
  /// the origin, in units; 0: there is no such word. Bit 0: see `more`.
  u64 counter = 0;
  u32 origin = 0;  ///< for that word, and the count is 1; without that word, the count
  u32 ready = 0;   ///< flag of its ring

  static constexpr u64 unit = 64;
  static constexpr u64 most = u64{1} << 48;  ///< of an address or offset
  /// In a ring: the message has more than these 16 bytes.
  static constexpr u64 more = 1;

  /// `distance`: bytes from the counter to the word for the origin; 0: there is none.
  MESHPOST_FN static Signal of(u64 counter, u64 distance, u32 origin) {
    return {.counter = counter | distance / unit << 48, .origin = origin};
  }
  MESHPOST_FN static Signal of(u32 const* counter, u64 distance, u32 origin) {
    return of(reinterpret_cast<u64>(counter), distance, origin);
  }
  MESHPOST_FN bool any() const { return at() != 0; }
  MESHPOST_FN bool has_more() const { return (counter & more) != 0; }
  MESHPOST_FN u64 at() const { return counter & (most - 1) & ~more; }
  MESHPOST_FN u64 distance() const { return (counter >> 48) * unit; }
  MESHPOST_FN u32 value() const { return distance() != 0 ? 1 : origin; }
  /// The same count in other addresses.
  MESHPOST_FN Signal moved_to(u64 address) const { return of(address, distance(), origin); }
  // If it is an address:
  MESHPOST_FN u32* word() const { return reinterpret_cast<u32*>(at()); }
  MESHPOST_FN u32* origin_word() const { return reinterpret_cast<u32*>(at() + distance()); }
};

struct Message {
  enum class Type : u32 {
    put,     ///< bytes to `address`; then `signal`
    store,   ///< the same with a word of 1, 2, 4 or 8 bytes, whole
    get,     ///< `bytes` at `address`, to `own`
    answer,  ///< to a get: bytes to its target
    news,    ///< only news from one proxy to another
    types
  };
  static constexpr u64 most_inline = 4096;  ///< bytes for which a ring has room

  Signal signal{};
  u64 address = 0;  ///< an address or offset
  u64 bytes = 0;
  u64 own = 0;  ///< sender's memory: a put's source, a get's target; or the word to store
  Type type = Type::put;
  u32 device = 0;  ///< whose memory offsets are in

  /// Into a ring: all except the flag.
  MESHPOST_FN void put_into(Message& record) const {
    record.signal.counter = signal.counter | Signal::more;
    record.signal.origin = signal.origin;
    record.address = address, record.bytes = bytes, record.own = own;
    record.type = type, record.device = device;
  }
  template <class T = char>
  MESHPOST_FN T* target() const {
    return reinterpret_cast<T*>(address);
  }
};
static_assert(sizeof(Message) == 48);

/// The room of a ring for its messages' bytes: of each slot as much as `most_inline`.
template <u32 slots>
struct MessageBytes {
  static constexpr u64 size = slots * Message::most_inline;

  char* all = nullptr;

  MESHPOST_FN char* of(u32 number) const { return all + number % slots * Message::most_inline; }
};

}  // namespace meshpost::via
