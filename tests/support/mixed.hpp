#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost::test {

/// A hash of all its arguments: kernels and oracles draw numbers from it, without shared state.
MESHPOST_FN constexpr u64 mixed(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
MESHPOST_FN constexpr u64 mixed(u64 a, u64 b, u64 c = 0, u64 d = 0) {
  return mixed(mixed(mixed(mixed(a) ^ b) ^ c) ^ d);
}

}  // namespace meshpost::test
