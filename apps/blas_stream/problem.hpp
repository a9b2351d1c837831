#pragma once
#include <cstdint>
#include <vector>

#include "common/blas.hpp"
#include "options.hpp"

// COACCEL's test (its equation 4): R = (Q - R) / 2, Q = (Q + R) / 2, R = L R, Q = K Q, R = R + Q, Q
// = R - Q, one after the other. Matrices of doubles are stored column by column. L and K are m x m
// and stay on the device. R and Q are m x n and pass through in chunks of columns. Chunks do not
// depend on each other.

namespace blas_stream {

/// L = 1.6 P and K = 2.5 P, where P is a full orthogonal matrix that depends on the seed.
///
/// So numbers neither grow nor vanish over many iterations. With u = (Q - R) / 2 and v = (Q + u) /
/// 2 an iteration is u' = -K v / 2 and v' = L u / 2 - K v / 4. energy() stays constant, because P
/// keeps lengths and angles, and 1.6 * 2.5 = 4. Two unrelated random matrices would scale the
/// numbers by a factor in each iteration. After some hundred iterations they would be 0 or
/// infinite.
struct Factors {
  std::vector<double> l, k;
  static constexpr double l_scale = 1.6, k_scale = 2.5;
};
Factors make_factors(u64 m, u64 seed);

/// The value 0.8 u.u + 1.25 v.v - 0.625 u.v of a column r of R and q of Q. An iteration keeps it
/// constant, except for rounding. It is at least 0.63 of u.u + v.v, and at most 1.42 of it.
double energy(double const* r, double const* q, u64 m);

/// Column `column` of R (which = 0) or Q (1) at the start. It is the same on every device.
void first_column(double* out, u64 m, u64 column, u32 which, u64 seed);

/// Enqueues the six operations on the stream of `blas`. They overwrite R and Q, and write the
/// results to `r_out` and `q_out`. All are m x columns.
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

/// Largest error of R and Q against a plain run, relative to that run's largest number.
double largest_error(PlainRun const& plain, Size size, double const* r, double const* q);
/// Error that rounding may cause after `iterations`: sums of m products differ only in their order.
double error_bound(u64 m, u32 iterations);

}  // namespace blas_stream
