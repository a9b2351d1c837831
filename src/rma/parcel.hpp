#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// What one proxy sends another, before the bytes. Places are a device of the world and an offset
/// in its part of the symmetric heap.
struct Parcel {
  static constexpr u32 nowhere = ~u32{0};
  enum class Kind : u32 { put, add, store, get, answer, delivered, count };
  /// Where the bytes of a put or an answer are, if they don't lie behind it: the engine has written
  /// them to their place, or to a slot for bytes that go on from there (Staging).
  enum class Written : u32 { no, to_window, to_slot };

  u32 run = 0;
  u32 sequence = 0;  ///< of this sender to this receiver; wraps
  Kind kind = Kind::put;
  u32 device = 0;
  u64 offset = 0;
  u64 bytes = 0;  ///< of a put, a store, an answer, or of what a get wants
  Written written = Written::no;
  u32 slot = 0;
  u32 delivered = 0;  ///< parcels that came the other way and were carried out; wraps
  u32 freed = 0;      ///< slots that were written the other way and let go of; wraps
  u32 settled = 0;    ///< as `delivered`, and can change no window any more; wraps
  u32 unused = 0;
  u64 sum = 0;  ///< sum_of() bytes that are written; 0: nobody has computed it
  u64 value = 0;
  // put: the counter to raise when its last bytes are there; 0: none
  u64 counter = 0, sender_word = 0;
  u32 sender = 0;               ///< rank, plus one
  u32 target_device = nowhere;  ///< get: the target, if it lies in the symmetric heap
  u64 target = 0;
  // get and answer: the asker's number for it, and where in its target the bytes belong
  u64 request = 0, position = 0;
  u64 check = 0;  ///< check_of() it
};
static_assert(std::has_unique_object_representations_v<Parcel>);  // all its bytes are checked

/// A number that another parcel, or other bytes behind it, would have once in 2^64 (XXH3).
///
/// Networks check too, but not all of them from one process's memory to the other's: TCP from end
/// to end with 16 bits, Ethernet and InfiniBand with 32, from one switch to the next or in all.
u64 check_of(Parcel parcel, std::string_view payload);
/// The same for bytes alone; never 0.
u64 sum_of(std::string_view bytes);

/// \throws Error(peer_lost): what came can't be what was sent
[[noreturn]] void refuse_parcel(std::string cause);

/// A parcel as it has come.
struct Arrival {
  Parcel parcel;
  std::string_view payload;  ///< of `message`
};
/// What a message holds, if it is a parcel that came as it was sent, and can be carried out where
/// there is a device with such memory. Bytes that are written are not looked at.
/// \throws Error(peer_lost)
Arrival read_parcel(std::string_view message);

}  // namespace meshpost::detail
