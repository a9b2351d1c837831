#pragma once
#include <meshpost/base/types.hpp>

namespace cg {

using meshpost::u32;
using meshpost::u64;

/// Work of an iteration, by what it is for.
enum class Phase : u32 { product, exchange, sums, vectors };
inline constexpr u32 phases = 4;
inline constexpr char const* phase_names[phases] = {"product", "exchange", "sums", "vectors"};

/// Why an iteration was the last one.
enum class End : u32 {
  limit,         ///< all iterations were done
  converged,     ///< |r| is small enough
  not_positive,  ///< p'Ap is not positive
  not_finite     ///< r'r or p'Ap is no finite number
};

struct Result {
  End end;
  u32 iterations;    ///< done
  double curvature;  ///< p'Ap of the iteration that was given up
};

/// When the iterations end.
struct Limits {
  u32 iterations;
  double tolerance;  ///< of |r| / |b|; 0: none

  /// The least tolerance. The squares of numbers below it may be no numbers any more, and p'Ap
  /// would become 0.
  static constexpr double least = 1e-100;

  MESHPOST_FN static bool finite(double value) {
    return value - value == 0;  // of infinity and NaN it is NaN
  }
  /// True if there is another iteration. `rho` is r'r, `first` that of the beginning.
  MESHPOST_FN bool goes_on(double rho, double first, Result& result) const {
    double const part = tolerance > least ? tolerance : least;
    if (!finite(rho)) result.end = End::not_finite;
    else if (rho <= part * part * first || rho == 0) result.end = End::converged;
    else if (result.iterations == iterations) result.end = End::limit;
    else return true;
    return false;
  }
  /// True if p'Ap is that of a positive definite matrix.
  MESHPOST_FN bool is_positive(double curvature, Result& result) const {
    result.curvature = curvature;
    if (curvature > 0 && finite(curvature)) return true;
    result.end = finite(curvature) ? End::not_positive : End::not_finite;
    return false;
  }
};

/// x += alpha p; r -= alpha q; the square of r.
struct Descend {
  double alpha;
  double *x, *r;
  double const *p, *q;

  MESHPOST_FN double operator()(u64 i) const {
    x[i] += alpha * p[i];
    double const left = r[i] - alpha * q[i];
    r[i] = left;
    return left * left;
  }
};

/// p = r + beta p.
struct Turn {
  double beta;
  double const* r;
  double* p;

  MESHPOST_FN void operator()(u64 i) const { p[i] = r[i] + beta * p[i]; }
};

}  // namespace cg
