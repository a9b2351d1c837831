// The formulas alone, in plain loops: order, balance, conservation, symmetry, stability.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "plain.hpp"

namespace euler {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;

Plain instability(Problem const& problem) {
  InitialState const start(problem);
  return {problem, true,
          [&](i64 x, i64 y, i64 z, u32 component) { return start.at(x, y, z, component); }};
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Mean error of a wave of density that the wind carries through a box without gravity.
double error_of_wave(u64 n) {
  Problem const problem{{n, n, n}};
  // In a time of 1 the wind goes one box in each direction. It is about as fast as sound.
  double const wind[3] = {0.1, 0.1, 0.2}, pressure = 0.01, time = 0.25;
  auto const mass = [&](i64 x, i64 y, i64 z, double boxes) {
    double const phase = (static_cast<double>(x + y + z) + 1.5) / static_cast<double>(n) - boxes;
    return 1 + 0.2 * std::sin(two_pi * phase);
  };
  Plain plain(problem, false, [&](i64 x, i64 y, i64 z, u32 component) {
    double const here = mass(x, y, z, 0);
    if (component == density) return here;
    if (component != energy) return here * wind[component - momentum_x];
    return pressure / (Problem::gamma - 1) + 0.5 * here * (0.01 + 0.01 + 0.04);
  });
  u32 const steps = static_cast<u32>(4 * n);
  auto equations = problem.equations(time / steps);
  equations.gravity = equations.hydrostatic = 0;
  plain.run(equations, steps);
  double error = 0;
  plain.each_cell([&](i64 x, i64 y, i64 z) {
    error += std::fabs(plain.at(x, y, z, density) - mass(x, y, z, 3 * time));
  });
  return error / static_cast<double>(n * n * n);
}

TEST(Scheme, has_the_third_order) {
  double const coarse = error_of_wave(12), fine = error_of_wave(24);
  EXPECT_LT(fine, 0.01);
  EXPECT_GT(std::log2(coarse / fine), 2.7) << coarse << " " << fine;
}

TEST(Scheme, keeps_a_gas_at_rest_between_walls_at_rest) {
  Problem problem{{4, 4, 16}, 0};
  auto const layer = [&](i64, i64, i64 z, u32 component) {
    double const at = (static_cast<double>(z) + 0.5) * problem.size(2) - Problem::height / 2;
    if (component == density) return 1.0;
    return component == energy ? (1 / Problem::gamma + Problem::gravity * at) / (Problem::gamma - 1)
                               : 0.0;
  };
  Plain plain(problem, true, layer);
  plain.run(problem.equations(0.5 / problem.initial_rate()), 200);
  plain.each_cell([&](i64 x, i64 y, i64 z) {
    EXPECT_NEAR(plain.at(x, y, z, momentum_z), 0, 1e-13);
    EXPECT_NEAR(plain.at(x, y, z, density), 1, 1e-13);
  });
}

TEST(Scheme, moves_mass_and_makes_none) {
  Problem const problem{{8, 6, 16}};
  auto plain = instability(problem);
  double const before = plain.sum(density);
  plain.run(problem.equations(0.5 / problem.initial_rate()), 300);
  EXPECT_NEAR(plain.sum(density) / before, 1, 1e-14);
  EXPECT_NE(plain.at(4, 3, 8, density), InitialState(problem).at(4, 3, 8, density));
  EXPECT_NEAR(plain.sum(momentum_x), 0, 1e-15);
}

TEST(Scheme, keeps_the_mirror_symmetry_to_the_bit) {
  Problem const problem{{8, 8, 12}};
  auto plain = instability(problem);
  plain.run(problem.equations(0.5 / problem.initial_rate()), 100);
  EXPECT_GT(std::fabs(plain.at(2, 4, 6, momentum_x)), 1e-6);  // else nothing is tested
  plain.each_cell([&](i64 x, i64 y, i64 z) {
    for (u32 c = 0; c < components; ++c) {
      double const value = plain.at(x, y, z, c);
      auto const sign = [&](u32 axes) { return Equations::mirrored(value, c, axes); };
      EXPECT_EQ(plain.at(7 - x, y, z, c), sign(1)) << x << " " << y << " " << z << " " << c;
      EXPECT_EQ(plain.at(x, 7 - y, z, c), sign(2)) << x << " " << y << " " << z << " " << c;
      u32 const turned = c == momentum_x ? momentum_y : c == momentum_y ? momentum_x : c;
      EXPECT_TRUE(same_bits(plain.at(y, x, z, turned), value)) << x << " " << y << " " << z;
    }
  });
}

TEST(Scheme, gives_the_same_bits_by_rows) {
  for (u64 const width : {3u, 64u, 67u, 130u}) {
    Problem const problem{{width, 6, 12}, 0.3};
    auto cells = instability(problem), rows = instability(problem);
    auto const equations = problem.equations(0.5 / problem.initial_rate());
    cells.run(equations, 4);
    rows.run(equations, 4, true);
    cells.each_cell([&](i64 x, i64 y, i64 z) {
      for (u32 c = 0; c < components; ++c)
        EXPECT_TRUE(same_bits(cells.at(x, y, z, c), rows.at(x, y, z, c)))
            << x << " " << y << " " << z << " " << c << " of " << width;
    });
  }
}

TEST(Scheme, is_stable_at_the_limit_and_not_far_above) {
  auto const largest = [](double cfl) {
    Problem const problem{{4, 4, 32}};  // flat cells: waves along z are the worst
    InitialState const start(problem);
    Plain plain(problem, true, [&](i64 x, i64 y, i64 z, u32 component) {
      // With waves of all lengths, so that what can grow does.
      double const noise = 1e-6 * static_cast<double>((x * 7 + y * 13 + z * 29) % 11 - 5);
      return start.at(x, y, z, component) * (1 + noise);
    });
    plain.run(problem.equations(cfl / problem.initial_rate()), 200);
    double most = 0;
    plain.each_cell([&](i64 x, i64 y, i64 z) {
      double const value = std::fabs(plain.at(x, y, z, momentum_z));
      most = value <= most ? most : value;  // also NaN
    });
    return most;
  };
  EXPECT_LT(largest(Problem::most_cfl), 0.1);
  EXPECT_LT(largest(Problem::stable_cfl), 0.1);
  EXPECT_FALSE(largest(2.5) < 10);
}

TEST(Problem, has_the_growth_rates_of_linear_theory) {
  // A = 1/3, g = 0.1, k = 2 pi / 0.1: sqrt(2.094) as tanh(2 pi) is nearly 1.
  EXPECT_NEAR(growth_rate(1, 0), 1.4472, 1e-4);
  EXPECT_NEAR(growth_rate(1, 1), 1.4472 * std::pow(2, 0.25), 1e-4);
}

TEST(Problem, names_cells_that_are_no_gas) {
  Problem const problem{{8, 8, 8}};
  EXPECT_GT(signal_rate(problem, {1, 0, 0, 0, 1}), 0);
  EXPECT_TRUE(std::isnan(signal_rate(problem, {-1, 0, 0, 0, 1})));
  EXPECT_TRUE(std::isnan(signal_rate(problem, {1, 0, 0, 2, 1})));  // less energy than it has speed
}

}  // namespace
}  // namespace euler
