#pragma once
#include <algorithm>

#include "common/random.hpp"
#include "csr.hpp"

namespace meshpost::apps::sparse {

/// Random bits from a number, as SplitMix64 gives them.
inline u64 mix(u64 x) { return mixed(x + golden); }
/// A number above 0 and at most 1.
inline double unit(u64 bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

/// Rows of random blocks. An entry depends on the seed, the row and the column's block alone, so it
/// is the same in every process.
struct RandomRows {
  u64 seed;
  double density;

  /// Entries of a row in a block of `width` columns: density * width, rounded up or down at random.
  u32 count(u32 row, u32 block, u32 width) const {
    double const mean = density * width + unit(of(row, block)) - 0x1p-53;
    return std::min(static_cast<u32>(mean), width);
  }
  /// Appends the row. The columns are cut into as many pieces as there are entries, with an entry
  /// at a random place of each. Values are above 0 and at most 1. Columns begin at `first`.
  void append(Csr& matrix, u32 row, u32 block, u32 width, u32 first) const {
    u32 const entries = count(row, block, width);
    for (u32 k = 0; k < entries; ++k) {
      u64 const bits = mix(of(row, block) + k + 1);
      u64 const begin = u64{width} * k / entries, end = u64{width} * (k + 1) / entries;
      matrix.column.push_back(first + static_cast<u32>(begin + mix(bits) % (end - begin)));
      matrix.value.push_back(unit(bits));
    }
  }

 private:
  u64 of(u32 row, u32 block) const { return mix(mix(mix(seed) + row) + block); }
};

/// Element `i` of a random vector; vectors of different numbers differ.
inline double random_element(u64 seed, u32 vector, u32 i) {
  return unit(mix(mix(~seed + vector) + i));
}

}  // namespace meshpost::apps::sparse
