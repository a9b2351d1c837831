#pragma once
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
  u64 bytes = 0;  ///< of a put, a store, or of what a get wants
  u64 value = 0;
  // put: the counter to raise when its last bytes are there; 0: none
  u64 counter = 0, sender_word = 0;
  u32 sender = 0;  ///< rank, plus one
  u32 reserved = 0;
  // get and answer: the asker's number for it, and where in its target the bytes belong
  u64 request = 0, position = 0;
};

}  // namespace meshpost::detail
