#pragma once
#include <meshpost/base/types.hpp>

namespace meshpost::apps::sparse {

/// Sums of a row. Entry k of the row goes to sum k % 8; then the sums are added in pairs. So a
/// device may use 1, 2, 4 or 8 threads a row, or vector instructions, and the bits are the same.
inline constexpr u32 row_sums = 8;

/// Rows of a matrix in the memory of a device, from `first_row` on. Their entries begin with number
/// `first_entry`.
struct Rows {
  u32 const* begin;
  u32 const* columns;
  double const* values;
  u32 first_row = 0, first_entry = 0;

  /// The first entry of a row, as an index of `columns` and `values`.
  MESHPOST_FN u32 start(u32 row) const { return begin[row - first_row] - first_entry; }
};

/// Rows from `first` to `last` - 1 times a vector: calls store(row, sum). `vector(c)` is its
/// element c. On a GPU `lanes` neighbouring threads share a row, and all threads of a warp call it.
template <u32 lanes, class Vector, class Store>
MESHPOST_FN void multiply(Rows const& matrix, u32 first, u32 last, u64 thread, u64 threads,
                          Vector const& vector, Store const& store) {
#if defined(__CUDA_ARCH__)
  constexpr u32 sums = row_sums / lanes;
  constexpr u32 batch = 5 * sums;  // entries of a lane that are loaded at once: 40 a row
  u32 const lane = static_cast<u32>(thread % lanes);
  u64 const rows = threads / lanes, mine = thread / lanes;
  for (u64 begin = first; begin < last; begin += rows) {  // all lanes of a warp go round equally
    bool const has_row = begin + mine < last;
    u32 const row = has_row ? static_cast<u32>(begin + mine) : first;
    u32 const end = has_row ? matrix.start(row + 1) : 0;
    double sum[sums] = {};
    for (u32 k = (has_row ? matrix.start(row) : 0) + lane; k < end; k += batch * lanes) {
      u32 column[batch];
      double value[batch], element[batch];
#pragma unroll
      for (u32 s = 0; s < batch; ++s) {
        bool const inside = k + s * lanes < end;
        column[s] = inside ? matrix.columns[k + s * lanes] : 0;
        value[s] = inside ? matrix.values[k + s * lanes] : 0;
      }
#pragma unroll
      for (u32 s = 0; s < batch; ++s) element[s] = k + s * lanes < end ? vector(column[s]) : 0;
#pragma unroll
      for (u32 s = 0; s < batch; ++s)
        if (k + s * lanes < end) sum[s % sums] += value[s] * element[s];
    }
#pragma unroll
    for (u32 half = sums / 2; half > 0; half /= 2)
#pragma unroll
      for (u32 s = 0; s < half; ++s) sum[s] += sum[s + half];
#pragma unroll
    for (u32 distance = lanes / 2; distance > 0; distance /= 2)
      sum[0] += __shfl_xor_sync(~0u, sum[0], static_cast<int>(distance));
    if (has_row && lane == 0) store(row, sum[0]);
  }
#else
  u32 const* const columns = matrix.columns;
  double const* const values = matrix.values;
  for (u64 row = first + thread; row < last; row += threads) {
    u32 k = matrix.start(static_cast<u32>(row));
    u32 const end = matrix.start(static_cast<u32>(row) + 1);
    double sum[row_sums] = {};
    for (; end - k >= row_sums; k += row_sums)
      for (u32 s = 0; s < row_sums; ++s) sum[s] += values[k + s] * vector(columns[k + s]);
    for (u32 s = 0; k + s < end; ++s) sum[s] += values[k + s] * vector(columns[k + s]);
    for (u32 half = row_sums / 2; half > 0; half /= 2)
      for (u32 s = 0; s < half; ++s) sum[s] += sum[s + half];
    store(static_cast<u32>(row), sum[0]);
  }
#endif
}

/// Threads of a GPU that share a row: of the one kernel, so that its ranks have about as many rows
/// as this takes; and of plain kernels, which have more threads.
inline constexpr u32 lanes_of_rank = 2, lanes_of_plain = 8;

}  // namespace meshpost::apps::sparse
