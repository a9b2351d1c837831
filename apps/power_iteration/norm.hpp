#pragma once
#include <cmath>
#include <limits>
#include <meshpost/base/types.hpp>
#include <vector>

#include "common/ordered_sum.hpp"

namespace power {

using meshpost::u32;
using meshpost::u64;
using meshpost::apps::partials;

// The length of a vector, always by the same sums: squares of `group` elements, then the sums of
// the groups of a block by sum_of(), then those of the blocks. So its bits depend neither on how
// many ranks or threads compute them, nor on the kind of device.

/// Elements whose squares are added at once. Shares of ranks consist of whole groups.
inline constexpr u32 group = 8;
MESHPOST_FN inline u32 groups_of(u32 elements) { return (elements + group - 1) / group; }

/// The squares of at most `group` elements, added in pairs.
MESHPOST_FN inline double squares(double const* x, u32 count) {
  double s[group];
  for (u32 k = 0; k < group; ++k) s[k] = k < count ? x[k] * x[k] : 0;
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

/// The sum of `count` numbers in memory, as ordered_sum() makes it.
template <class Sync>
MESHPOST_FN double sum_of(double const* numbers, u32 count, u32 thread, u32 threads,
                          double* partial, Sync const& sync) {
  return meshpost::apps::ordered_sum(
      count, [=](u32 k) { return numbers[k]; }, thread, threads, partial, sync);
}

/// The factor that makes a vector's length 1, from the sums of squares of its blocks. NaN if it has
/// no length, or one that is no finite number. Never 0, which means that there is no factor yet.
MESHPOST_FN inline double factor(double const* sums, u32 blocks) {
  double sum = sums[0];
  for (u32 k = 1; k < blocks; ++k) sum += sums[k];
  bool const good = sum > 0 && sum <= std::numeric_limits<double>::max();
  return good ? 1 / sqrt(sum) : std::numeric_limits<double>::quiet_NaN();
}

/// The factor of the vector that the iteration begins with. Added one by one, on the host.
inline double first_factor(std::vector<double> const& vector) {
  double sum = 0;
  for (double const element : vector) sum += element * element;
  return 1 / std::sqrt(sum);
}

}  // namespace power
