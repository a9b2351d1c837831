#pragma once
#include <bit>

#include "meshpost/base/fn.hpp"

namespace meshpost::blas {

/// bfloat16 as the host sees it: the upper half of a float32.
struct Bf16 {
  unsigned short bits = 0;

  Bf16() = default;
  /// Rounds to nearest, ties to even. NaN stays NaN.
  explicit Bf16(float value) {
    u32 const all = std::bit_cast<u32>(value);
    bool const nan = (all & 0x7fffffffu) > 0x7f800000u;
    u32 const rounded = nan ? all | 0x400000u : all + 0x7fffu + ((all >> 16) & 1u);
    bits = static_cast<unsigned short>(rounded >> 16);
  }
  operator float() const { return std::bit_cast<float>(u32{bits} << 16); }
};

}  // namespace meshpost::blas
