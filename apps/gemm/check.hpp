#pragma once
#include "matrix.hpp"

namespace meshpost::gemm {

/// The largest error found, and what rounding can explain.
struct Verdict {
  double error = 0, bound = 0;
  bool passed() const { return error <= bound; }  // NaN doesn't
};

/// How far an element of a product of random numbers in [-1, 1] may be from the exact one.
///
/// Partial sums of k such products stay below 2 sqrt(k) (six standard deviations), and roundings
/// add up like a random walk, so that k roundings of sums cost k u / 3 in the mean square. The
/// bound is 8 (k + 8) u, where u is 2^-53 for double, 2^-24 for float and 2^-22 for tf32 and bf16,
/// whose tensor cores truncate; besides 4 sqrt(k) 2^-11 in tf32, whose factors are rounded, and
/// (steps + 1) 2 sqrt(k) 2^-9 in bf16, whose result is rounded after each of `steps` products. A
/// panel that is missing or wrong is off by sqrt(panel) / 3 in most elements.
double tolerance(blas::Type type, u64 k, u64 steps);

/// Compares two results of the same product, element by element. `steps`: products added for an
/// element of the one that has more.
Verdict compare(Distributed const& one, Distributed const& other, u64 k, u64 steps,
                blas::Team& team);

/// The vector x of a round of Freivalds' check: 1 and -1 by a hash of both seeds, the round and the
/// place. So another seed tries other vectors.
std::vector<double> random_signs(u64 a_seed, u64 b_seed, u32 round, u64 count);

/// Freivalds' check: C x against A (B x) in double for a vector x of random signs, where A and B
/// are those that fill() makes from these seeds. A wrong element goes unseen with probability 1/2
/// in one round only if it has as large a counterpart in its row; `rounds` repeats it.
Verdict freivalds(Distributed const& c, u64 k, u64 a_seed, u64 b_seed, u64 steps, u32 rounds,
                  blas::Team& team);

}  // namespace meshpost::gemm
