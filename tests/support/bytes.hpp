#pragma once
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "meshpost/base/types.hpp"
#include "support/mixed.hpp"

// Bytes for tests, written by words and in few steps: tests are not optimised, and sanitizers look
// at each access.

namespace meshpost::test {

/// Depends on the next number of `random`. `All`: std::string or a vector of single bytes.
template <class All = std::vector<u8>>
All random_data(std::mt19937_64& random, u64 size) {
  All bytes(size, {});
  u64 const seed = random();
  for (u64 i = 0; i < size; i += 8) {
    u64 const word = mixed(seed + i);
    std::memcpy(bytes.data() + i, &word, std::min<u64>(8, size - i));
  }
  return bytes;
}

/// `to` becomes what differs from `from` in every bit.
inline void complement(u8* to, u8 const* from, u64 size) {
  for (u64 i = 0; i < size; i += 8) {
    u64 word = 0;
    u64 const some = std::min<u64>(8, size - i);
    std::memcpy(&word, from + i, some);
    word = ~word;
    std::memcpy(to + i, &word, some);
  }
}

}  // namespace meshpost::test
