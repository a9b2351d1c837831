#pragma once
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// Where elements go: each place once, where its arrivals begin, and these: numbers of elements.
/// They ascend for each place, and so are in the order of the parts that send them.
struct ExchangeTargets {
  /// `all`: the place of each element.
  explicit ExchangeTargets(std::vector<u64> const& all);
  std::vector<u64> places{}, begins{}, numbers;
};

}  // namespace meshpost::detail
