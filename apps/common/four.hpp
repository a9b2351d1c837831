#pragma once
#include <meshpost/base/fn.hpp>
#include <meshpost/base/types.hpp>

namespace meshpost::apps {

/// Four numbers side by side, which a GPU loads and stores at once. They are aligned to 16 bytes.
template <class Real>
struct alignas(16) Four {
  Real numbers[4];

  Four() = default;
  explicit MESHPOST_FN Four(Real const* from) { *this = *reinterpret_cast<Four const*>(from); }
  MESHPOST_FN void store(Real* to) const { *reinterpret_cast<Four*>(to) = *this; }
  MESHPOST_FN Real& operator[](u32 k) { return numbers[k]; }
  MESHPOST_FN Real operator[](u32 k) const { return numbers[k]; }
};

}  // namespace meshpost::apps
