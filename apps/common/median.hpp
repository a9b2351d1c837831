#pragma once
#include <algorithm>
#include <vector>

namespace meshpost::apps {

/// The mean of the two middle values if their number is even; 0 of no values.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  auto const middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace meshpost::apps
