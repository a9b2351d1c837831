#pragma once
#include <cstdint>
#include <vector>

#include "common/blas.hpp"

// COACCEL's test (its equation 4): R = (Q - R) / 2, Q = (Q + R) / 2, R = L R, Q = K Q, R = R + Q,
// Q = R - Q, one after the other, for matrices of doubles stored column by column. L and K are m x
// m and stay where they are; R and Q are m x n and pass through in chunks of columns, which do not
// depend on each other.

namespace blas_stream {

using meshpost::u32;
using meshpost::u64;

struct Size {
  u64 m = 1024, n = 131072;
};

/// L and K with a norm near 1, so that numbers neither grow nor vanish over the iterations.
struct Factors {
  std::vector<double> l, k;
};
Factors make_factors(u64 m, u64 seed);

/// Column `column` of R (which = 0) or Q (1) at the start; the same wherever it is made.
void first_column(double* out, u64 m, u64 column, u32 which, u64 seed);

/// Puts the six operations on the stream of `blas`: from R and Q, which are used up, to `r_out` and
/// `q_out`, all m x columns.
void put_step(meshpost::blas::Blas& blas, u64 m, u64 columns, double const* l, double const* k,
              double* r, double* q, double* r_out, double* q_out);

/// The same iterations by BLAS calls on the whole of R and Q in the host's memory, on all cores.
class PlainRun {
 public:
  /// `columns`: which columns of the problem it computes.
  PlainRun(Size size, std::vector<u64> columns, Factors const& factors, u64 seed);
  /// Seconds of one iteration.
  double iterate();
  /// Column number `i` of those given.
  double const* r(u64 i) const { return r_.data() + i * size_.m; }
  double const* q(u64 i) const { return q_.data() + i * size_.m; }
  std::vector<u64> const& columns() const { return columns_; }

 private:
  Size size_;
  std::vector<u64> columns_;
  Factors const& factors_;
  std::vector<double> r_, q_, r_next_, q_next_;
  std::unique_ptr<meshpost::Stream> stream_;
};

/// Largest error of R and Q against a plain run, as a share of its largest number.
double largest_error(PlainRun const& plain, Size size, double const* r, double const* q);
/// What rounding may come to after `iterations`: sums of m products differ in their order only.
double error_bound(u64 m, u32 iterations);

}  // namespace blas_stream
