#pragma once
#include <meshpost/meshpost.hpp>

#include "csr.hpp"
#include "product.hpp"

namespace meshpost::apps::sparse {

/// Bytes that keep() needs for a share of so many rows and entries.
inline constexpr u64 kept_bytes(u64 rows, u64 entries) {
  return entries * (sizeof(double) + sizeof(u32)) + (rows + 1) * sizeof(u32);
}
/// More are not kept: two ranks fit into a multiprocessor of an H100.
inline constexpr u64 most_kept_bytes = u64{100} << 10;

/// Copies rows of `matrix` to the scratch memory of a rank, behind `before` bytes (a multiple of
/// 8). On a GPU that is shared memory: an acquire clears the first-level cache, but not this.
/// All threads call it; they may read the rows when it returns.
MESHPOST_FN inline Rows keep(Rank& self, Rows const& matrix, Range rows, u64 before) {
  u32 const first = matrix.start(rows.first), entries = matrix.start(rows.last) - first;
  u64 const bytes = before + kept_bytes(rows.count(), entries);
  char* const memory = self.scratch<char>(bytes).data() + before;
  auto* const values = reinterpret_cast<double*>(memory);
  auto* const columns = reinterpret_cast<u32*>(values + entries);
  u32* const begin = columns + entries;
  self.each(entries, [&](u64 k) {
    values[k] = matrix.values[first + k];
    columns[k] = matrix.columns[first + k];
  });
  self.each(rows.count() + u64{1},
            [&](u64 k) { begin[k] = matrix.begin[rows.first - matrix.first_row + k]; });
  self.sync();
  return {begin, columns, values, rows.first, first};
}

}  // namespace meshpost::apps::sparse
