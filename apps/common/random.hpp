#pragma once
#include <meshpost/base/types.hpp>

namespace meshpost::apps {

/// 2^64 over the golden ratio: what SplitMix64 adds for each number.
inline constexpr u64 golden = 0x9e3779b97f4a7c15;

/// Random bits from a number: the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
inline u64 mixed(u64 x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace meshpost::apps
