#pragma once
#include <string>
#include <string_view>
#include <type_traits>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// What one proxy sends another, before the bytes. Places are a device of the world and an offset
/// in its part of the symmetric heap.
struct Parcel {
  enum class Kind : u32 { put, add, store, get, answer, count };

  u32 run = 0;
  u32 sequence = 0;  ///< of this sender to this receiver; wraps
  Kind kind = Kind::put;
  u32 device = 0;
  u64 offset = 0;
  u64 bytes = 0;  ///< of a put, a store, an answer, or of what a get wants
  u64 value = 0;
  // put: the counter to raise when its last bytes are there; 0: none
  u64 counter = 0, sender_word = 0;
  u32 sender = 0;  ///< rank, plus one
  u32 reserved = 0;
  // get and answer: the asker's number for it, and where in its target the bytes belong
  u64 request = 0, position = 0;
  u64 check = 0;  ///< check_of() it
};
static_assert(std::has_unique_object_representations_v<Parcel>);  // all its bytes are checked

/// A number that another parcel, or other bytes behind it, would not have: of all 8-byte words, any
/// one may change in any way and it differs; if more do, it is equal once in 2^64.
///
/// Networks check too, but not all of them from one process's memory to the other's: TCP from end
/// to end with 16 bits, Ethernet and InfiniBand with 32, from one switch to the next or in all.
u64 check_of(Parcel parcel, std::string_view payload);

/// A parcel as it has come.
struct Arrival {
  Parcel parcel;
  std::string_view payload;  ///< of `message`
};
/// What a message holds, if it is a parcel that came as it was sent, and can be carried out where
/// there is a device with such memory.
/// \throws Error(peer_lost)
Arrival read_parcel(std::string_view message);

}  // namespace meshpost::detail
