// The arithmetic of the test: numbers stay bounded, and the check finds errors.
#include "problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace blas_stream {
namespace {

double dot(double const* one, double const* other, u64 m) {
  double sum = 0;
  for (u64 i = 0; i < m; ++i) sum += one[i] * other[i];
  return sum;
}

TEST(BlasStreamProblem, has_factors_that_are_multiples_of_one_orthogonal_matrix) {
  for (u64 const m : {1u, 2u, 7u, 24u}) {
    auto const [l, k] = make_factors(m, 5);
    for (u64 i = 0; i < m; ++i)
      for (u64 j = 0; j < m; ++j) {
        double const scale = Factors::l_scale * Factors::k_scale;
        EXPECT_NEAR(dot(&l[i * m], &k[j * m], m), i == j ? scale : 0, 1e-13);
        EXPECT_DOUBLE_EQ(l[j * m + i] * Factors::k_scale, k[j * m + i] * Factors::l_scale);
      }
  }
  EXPECT_NE(make_factors(24, 5).l, make_factors(24, 6).l);
}

TEST(BlasStreamProblem, keeps_its_numbers_bounded_over_thousands_of_iterations) {
  for (u64 const m : {1u, 24u}) {
    auto const factors = make_factors(m, 3);
    PlainRun run({m, 2}, {0, 1}, factors, 3);
    double energies[2], largest[2];
    auto const most = [&](u64 i) {
      return std::sqrt(std::max(dot(run.r(i), run.r(i), m), dot(run.q(i), run.q(i), m)));
    };
    for (u64 i = 0; i < 2; ++i) energies[i] = energy(run.r(i), run.q(i), m), largest[i] = most(i);
    constexpr u32 iterations = 1500;
    for (u32 done = 1; done <= iterations; ++done) {
      run.iterate();
      for (u64 i = 0; i < 2 && done % 100 == 0; ++i) {
        ASSERT_NEAR(energy(run.r(i), run.q(i), m) / energies[i], 1, error_bound(m, done)) << m;
        // Follows from the bounds of energy(), because R and Q are u and v of norm 4 at most.
        ASSERT_GT(most(i), largest[i] / 20);
        ASSERT_LT(most(i), largest[i] * 20);
      }
    }
  }
}

TEST(BlasStreamProblem, has_an_error_bound_that_sees_one_wrong_number) {
  constexpr u64 m = 24;
  auto const factors = make_factors(m, 3);
  PlainRun run({m, 1}, {0}, factors, 3);
  for (u32 done = 0; done < 1000; ++done) run.iterate();
  std::vector<double> r(run.r(0), run.r(0) + m);
  std::vector<double> const q(run.q(0), run.q(0) + m);
  EXPECT_EQ(largest_error(run, {m, 1}, r.data(), q.data()), 0);
  r[7] += 1e-6;
  EXPECT_GT(largest_error(run, {m, 1}, r.data(), q.data()), error_bound(m, 1000));
}

}  // namespace
}  // namespace blas_stream
