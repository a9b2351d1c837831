#pragma once
#include <meshpost/base/types.hpp>

#include <algorithm>

#include "common/ordered_sum.hpp"

namespace cg {

using meshpost::u32;
using meshpost::u64;

// A dot product, always by the same additions. The rows are cut into pieces, whose height depends
// on the matrix alone. A device owns whole pieces, and sums each of them. All devices get the sums
// of all pieces, and add them by ordered_sum(). So the bits depend neither on the devices, nor on
// their ranks and threads.

/// The pieces of all rows.
struct Pieces {
  u64 rows = 0, height = 32;

  /// 4096 pieces at most: their sums go to all devices.
  static Pieces of(u64 rows) {
    u64 const least = (rows + 4095) / 4096;
    return {rows, std::max<u64>(32, (least + 31) / 32 * 32)};
  }
  MESHPOST_FN u32 count() const { return static_cast<u32>((rows + height - 1) / height); }
};

/// Numbers of a piece that are summed apart, then added in pairs. On a GPU: threads.
inline constexpr u32 lanes_of_piece = 32;

/// Sums of the pieces from `first` to `last` - 1 of a device with `own` rows: sums[piece] is the
/// sum of term(row). It calls term(row) once for each of their rows. On a GPU all threads of a warp
/// call it together.
template <class Term>
MESHPOST_FN void sum_pieces(u64 height, u64 own, u32 first, u32 last, u64 thread, u64 threads,
                            double* sums, Term const& term) {
  constexpr u32 lanes = lanes_of_piece;
#if defined(__CUDA_ARCH__)
  u32 const lane = static_cast<u32>(thread % lanes);
  for (u64 piece = first + thread / lanes; piece < last; piece += threads / lanes) {
    u64 const begin = piece * height, next = begin + height, end = next < own ? next : own;
    double sum = 0;
#pragma unroll 4
    for (u64 row = begin + lane; row < end; row += lanes) sum += term(row);
#pragma unroll
    for (u32 distance = lanes / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, static_cast<int>(distance));
    if (lane == 0) sums[piece] = sum;
  }
#else
  for (u64 piece = first + thread; piece < last; piece += threads) {
    u64 const begin = piece * height, next = begin + height, end = next < own ? next : own;
    double sum[lanes] = {};
    u64 row = begin;
    for (; end - row >= lanes; row += lanes) {
#pragma GCC ivdep  // a term touches elements of its own row only
      for (u32 s = 0; s < lanes; ++s) sum[s] += term(row + s);
    }
    for (u32 s = 0; row + s < end; ++s) sum[s] += term(row + s);
    for (u32 half = lanes / 2; half > 0; half /= 2)
      for (u32 s = 0; s < half; ++s) sum[s] += sum[s + half];
    sums[piece] = sum[0];
  }
#endif
}

/// The sums of all pieces, as a device has them: its own, then those of the others, which ascend
/// (PartPlan). Number k is that of piece k.
struct AllSums {
  double const* sums;
  u32 first, own;  ///< the device's own pieces

  MESHPOST_FN double operator()(u32 piece) const {
    if (piece < first) return sums[own + piece];
    return sums[piece < first + own ? piece - first : piece];
  }
};

}  // namespace cg
