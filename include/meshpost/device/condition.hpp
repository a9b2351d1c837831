#pragma once
#include "meshpost/base/types.hpp"

namespace meshpost {

/// The type of a polled word's bits.
enum class WordType : u8 { u32_, i32_, u64_, i64_, f32_, f64_, counter };

/// The condition that a rank waits for: a word compared with a value. A plain value, so that the
/// rank, its scheduler and the host can each test it.
///
/// `counter` is a 32-bit count that wraps. It holds once word - value, read as signed, is not
/// negative.
struct Condition {
  void const* word = nullptr;
  u64 value = 0;
  WordType type = WordType::counter;
  Compare compare = Compare::greater_equal;
};

/// A count of notifications that a rank waits for.
struct AwaitedCount {
  u32* counter = nullptr;  ///< null: all that has come
  u32 count = 0;
  u32 counter_part = 0;  ///< as in WindowInfo
};

/// Bytes of a word of this type.
MESHPOST_FN constexpr u32 width(WordType type) {
  bool const four = type == WordType::u32_ || type == WordType::i32_ || type == WordType::f32_ ||
                    type == WordType::counter;
  return four ? 4 : 8;
}

/// True if `left compare right`.
template <class T>
MESHPOST_FN constexpr bool compares(T left, Compare compare, T right) {
  switch (compare) {
    case Compare::equal: return left == right;
    case Compare::not_equal: return left != right;
    case Compare::less: return left < right;
    case Compare::less_equal: return left <= right;
    case Compare::greater: return left > right;
    case Compare::greater_equal: return left >= right;
  }
  return false;
}

/// The bits of `value`, zero-extended. T has 4 or 8 bytes.
template <class T>
MESHPOST_FN constexpr u64 bits_of(T value) {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(u32, value);
  else return __builtin_bit_cast(u64, value);
}

/// The value whose bits are `bits`.
template <class T>
MESHPOST_FN constexpr T from_bits(u64 bits) {
  if constexpr (sizeof(T) == 4) return __builtin_bit_cast(T, static_cast<u32>(bits));
  else return __builtin_bit_cast(T, bits);
}

/// True if `condition` holds for a word with these bits.
MESHPOST_FN constexpr bool holds(Condition const& condition, u64 bits) {
  u64 const value = condition.value;
  switch (condition.type) {
    case WordType::counter:
      return static_cast<i32>(static_cast<u32>(bits) - static_cast<u32>(value)) >= 0;
    case WordType::u32_:
      return compares(from_bits<u32>(bits), condition.compare, from_bits<u32>(value));
    case WordType::i32_:
      return compares(from_bits<i32>(bits), condition.compare, from_bits<i32>(value));
    case WordType::u64_: return compares(bits, condition.compare, value);
    case WordType::i64_:
      return compares(from_bits<i64>(bits), condition.compare, from_bits<i64>(value));
    case WordType::f32_:
      return compares(from_bits<float>(bits), condition.compare, from_bits<float>(value));
    case WordType::f64_:
      return compares(from_bits<double>(bits), condition.compare, from_bits<double>(value));
  }
  return false;
}

}  // namespace meshpost
