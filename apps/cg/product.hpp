#pragma once
#include <meshpost/base/types.hpp>

namespace cg {

using meshpost::u32;
using meshpost::u64;

/// Rows of a device's matrix: the inner or the outer ones, as CSR. Columns are places in the
/// device's vector: its own elements, then its halo. Row k's result belongs to element place[k].
struct Rows {
  u32 const *begin, *column, *place;
  double const* value;
};

#if defined(__CUDACC__)
/// `lanes` neighbouring threads share a row: entry k goes to thread k % lanes, then they add their
/// sums in pairs. All threads of a warp call it.
template <u32 lanes>
__device__ void multiply_by_lanes(Rows const& rows, u64 first, u64 last, u64 thread, u64 threads,
                                  double const* x, double* y) {
  u32 const lane = static_cast<u32>(thread % lanes);
  u64 const step = threads / lanes, mine = thread / lanes;
  for (u64 base = first; base < last; base += step) {  // all lanes of a warp go round equally
    u64 const row = base + mine;
    bool const has_row = row < last;
    u32 const end = has_row ? rows.begin[row + 1] : 0;
    double sum = 0;
#pragma unroll 4
    for (u32 k = has_row ? rows.begin[row] + lane : 0; k < end; k += lanes)
      sum += rows.value[k] * x[rows.column[k]];
#pragma unroll
    for (u32 distance = lanes / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(~0u, sum, static_cast<int>(distance));
    if (has_row && lane == 0) y[rows.place[row]] = sum;
  }
}
#endif

/// y = A x for rows from `first` to `last` - 1. On a GPU `lanes` threads share a row: 2, 4, 8, 16
/// or
/// 32. A CPU device adds as four threads of a GPU do. So sums have the same bits there if `lanes`
/// is 4, and others if it is not.
MESHPOST_FN inline void multiply(Rows const& rows, u32 lanes, u64 first, u64 last, u64 thread,
                                 u64 threads, double const* x, double* y) {
#if defined(__CUDA_ARCH__)
  switch (lanes) {
    case 2: multiply_by_lanes<2>(rows, first, last, thread, threads, x, y); break;
    case 4: multiply_by_lanes<4>(rows, first, last, thread, threads, x, y); break;
    case 8: multiply_by_lanes<8>(rows, first, last, thread, threads, x, y); break;
    case 16: multiply_by_lanes<16>(rows, first, last, thread, threads, x, y); break;
    default: multiply_by_lanes<32>(rows, first, last, thread, threads, x, y);
  }
#else
  static_cast<void>(lanes);
  u32 const *const begin = rows.begin, *const column = rows.column, *const place = rows.place;
  double const* const value = rows.value;
  for (u64 row = first + thread; row < last; row += threads) {
    u64 const start = begin[row];
    u64 left = begin[row + 1] - start;
    double const* v = value + start;
    u32 const* c = column + start;
    double a = 0, b = 0, d = 0, e = 0;  // apart: an addition begins when the one before has ended
    for (; left >= 4; left -= 4, v += 4, c += 4) {
      a += v[0] * x[c[0]];
      b += v[1] * x[c[1]];
      d += v[2] * x[c[2]];
      e += v[3] * x[c[3]];
    }
    if (left > 0) a += v[0] * x[c[0]];
    if (left > 1) b += v[1] * x[c[1]];
    if (left > 2) d += v[2] * x[c[2]];
    y[place[row]] = (a + d) + (b + e);
  }
#endif
}

/// Threads of a GPU that share a row whose mean length is `entries`: each has about four entries.
inline u32 lanes_for(double entries) {
  u32 lanes = 2;
  while (lanes < 32 && lanes * 4 < entries) lanes *= 2;
  return lanes;
}

}  // namespace cg
