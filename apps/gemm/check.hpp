#pragma once
#include "matrix.hpp"

namespace meshpost::gemm {

/// The largest error found, and what rounding can explain.
struct Verdict {
  double error = 0, bound = 0;
  bool passed() const { return error <= bound; }  // false for NaN
};

/// Largest allowed error of an element of a product of random numbers in [-1, 1].
///
/// Partial sums of k such products stay below 2 sqrt(k) (six standard deviations). Roundings add up
/// like a random walk, so that k roundings of sums cost k u / 3 in the mean square. The bound is 8
/// (k + 8) u. Here u is 2^-53 for double, 2^-24 for float, and 2^-22 for tf32 and bf16, because
/// tensor cores truncate. tf32 adds 4 sqrt(k) 2^-11, because its factors are rounded. bf16 adds
/// (steps + 1) 2 sqrt(k) 2^-9, because its result is rounded after each of `steps` products. A
/// panel that is missing or wrong causes an error of sqrt(panel) / 3 in most elements.
///
/// `products` in a row, each result the next A: random numbers grow by sqrt(k / 3) in a product,
/// and errors of earlier products as well. The errors of all products add up.
double tolerance(blas::Type type, u64 k, u64 steps, u32 products = 1);

/// Compares two results of the same product, element by element. `steps`: number of products added
/// for an element, in the result that has more.
Verdict compare(Distributed const& one, Distributed const& other, u64 k, u64 steps,
                blas::Team& team);

/// The vector x of a round of Freivalds' check: 1 and -1 by a hash of both seeds, the round and the
/// place. So another seed gives other vectors.
std::vector<double> random_signs(u64 a_seed, u64 b_seed, u32 round, u64 count);

/// Freivalds' check: C x against A (B x) in double for a vector x of random signs. A and B are
/// those that fill() makes from these seeds. One round misses a wrong element, with probability
/// 1/2, only if another error of the same size is in its row. `rounds` repeats the check. With
/// several `products` in a row, C is A B B ...
Verdict freivalds(Distributed const& c, u64 k, u64 a_seed, u64 b_seed, u64 steps, u32 rounds,
                  blas::Team& team, u32 products = 1);

}  // namespace meshpost::gemm
