#pragma once
#include "common/random.hpp"

namespace stencil {

/// The initial field at a point: in [0, 100), from its number, the same in every process.
inline float value_at(meshpost::u64 point, meshpost::u32 seed) {
  using meshpost::apps::golden, meshpost::apps::mixed;
  meshpost::u64 const bits = mixed(point + seed * golden);
  return static_cast<float>(bits >> 40) * (100.0f / static_cast<float>(1u << 24));
}

}  // namespace stencil
