#pragma once
#include <algorithm>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// Puts the numbers 0 to `count` - 1 into groups. All members of a group fit each other: `fits(one,
/// other)` and `fits(other, one)`. Each number goes into the first group whose members it all fits.
/// Returns the group of each number. The result is the same wherever `fits` is.
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
