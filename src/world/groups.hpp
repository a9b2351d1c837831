#pragma once
#include <algorithm>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// Puts 0 to `count` - 1 into groups all of whose members fit each other: each is in the first one
/// that it fits in whole, `fits(one, other)` and back. Returns the number of each one's group;
/// equal wherever `fits` is.
template <class Fits>
std::vector<u32> groups_that_fit(u32 count, Fits&& fits) {
  std::vector<std::vector<u32>> groups;
  std::vector<u32> numbers;
  for (u32 one = 0; one < count; ++one) {
    auto found = std::ranges::find_if(groups, [&](std::vector<u32> const& group) {
      return std::ranges::all_of(group,
                                 [&](u32 other) { return fits(one, other) && fits(other, one); });
    });
    if (found == groups.end()) found = groups.emplace(groups.end());
    found->push_back(one);
    numbers.push_back(static_cast<u32>(found - groups.begin()));
  }
  return numbers;
}

}  // namespace meshpost
