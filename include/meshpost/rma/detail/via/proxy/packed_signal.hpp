#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// A count to raise, the word behind it that says who did, and a flag, in 16 bytes, which devices
/// read and write at once over the bus. What does not fit is said otherwise.
struct alignas(16) PackedSignal {
  u64 address = 0;  ///< of the counter, and in the upper 16 bits how far behind it the other word
                    ///< lies; 0: there is none
  u32 number = 0;   ///< for that word, and one to add; without it, what to add
  u32 ready = 0;    ///< the flag

  static constexpr u64 unit = 64;  ///< of that distance, in bytes

  MESHPOST_FN static bool fits(u32 const* counter, u32 const* sender_word) {
    u64 const behind = distance(counter, sender_word);
    bool const near = behind % unit == 0 && behind / unit < (1u << 16);
    return bits(counter) >> 48 == 0 && near && (behind != 0 || !sender_word);
  }
  /// Of a counter and a word that fit.
  MESHPOST_FN static u64 pack_address(u32 const* counter, u32 const* sender_word) {
    return bits(counter) | distance(counter, sender_word) / unit << 48;
  }
  MESHPOST_FN u32* counter() const {
    return reinterpret_cast<u32*>(address & ((u64{1} << 48) - 1));
  }
  MESHPOST_FN bool has_sender() const { return address >> 48 != 0; }
  MESHPOST_FN u32* sender_word() const { return counter() + (address >> 48) * unit / sizeof(u32); }

 private:
  MESHPOST_FN static u64 bits(u32 const* word) { return reinterpret_cast<u64>(word); }
  MESHPOST_FN static u64 distance(u32 const* counter, u32 const* sender_word) {
    return sender_word ? bits(sender_word) - bits(counter) : 0;
  }
};

}  // namespace meshpost
