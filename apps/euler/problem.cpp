#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace euler {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;

/// 1 + cos over one period, by cell. It is computed for the nearer half, so that it is symmetric to
/// the bit.
double bump(i64 cell, u64 cells) {
  i64 const last = static_cast<i64>(cells) - 1;
  double const place =
      (static_cast<double>(std::min(cell, last - cell)) + 0.5) / static_cast<double>(cells);
  return 1 + std::cos(two_pi * (place - 0.5));
}

}  // namespace

Equations Problem::equations(double dt) const {
  return {gamma,
          gravity,
          dt,
          {1 / (12 * size(0)), 1 / (12 * size(1)), 1 / (12 * size(2))},
          gravity * size(2) / (gamma - 1),
          static_cast<i64>(cells.z),
          damping};
}

InitialState::InitialState(Problem const& problem) : problem_(problem) {
  u64 const cells[] = {problem.cells.x, problem.cells.y, problem.cells.z};
  for (u32 d = 0; d < 3; ++d)
    for (u64 i = 0; i < cells[d]; ++i) bumps_[d].push_back(bump(static_cast<i64>(i), cells[d]));
}

double InitialState::at(i64 x, i64 y, i64 z, u32 component) const {
  double const at = (static_cast<double>(z) + 0.5) * problem_.size(2) - Problem::height / 2;
  double const mass = at > 0 ? Problem::heavy : Problem::light;
  if (component == density) return mass;
  if (component == momentum_x || component == momentum_y) return 0;
  auto const bump = [&](u32 d, i64 cell) { return bumps_[d][static_cast<u64>(cell)]; };
  double const speed = problem_.amplitude * (bump(0, x) * bump(1, y) * bump(2, z) / 8);
  if (component == momentum_z) return mass * speed;
  double const pressure = 1 / Problem::gamma + Problem::gravity * mass * at;
  return pressure / (Problem::gamma - 1) + 0.5 * mass * speed * speed;
}

double Problem::initial_rate() const {
  InitialState const start(*this);
  double most = 0;
  // The perturbation is fastest in the middle of x and y.
  i64 const x = static_cast<i64>(cells.x / 2), y = static_cast<i64>(cells.y / 2);
  for (i64 z = 0; z < static_cast<i64>(cells.z); ++z) {
    double u[components];
    for (u32 c = 0; c < components; ++c) u[c] = start.at(x, y, z, c);
    most = std::max(most, signal_rate(*this, u));
  }
  return most;
}

double signal_rate(Problem const& problem, double const (&u)[components]) {
  double const kinetic = (u[momentum_x] * u[momentum_x] + u[momentum_y] * u[momentum_y] +
                          u[momentum_z] * u[momentum_z]) /
                         (2 * u[density]);
  double const pressure = (Problem::gamma - 1) * (u[energy] - kinetic);
  double const sound = std::sqrt(Problem::gamma * pressure / u[density]);
  double rate = 0;
  for (u32 d = 0; d < 3; ++d) rate += (std::abs(u[1 + d] / u[density]) + sound) / problem.size(d);
  return u[density] > 0 && pressure > 0 ? rate : std::nan("");
}

double growth_rate(u32 x_modes, u32 y_modes) {
  double const k = two_pi / Problem::width * std::hypot(x_modes, y_modes);
  double const atwood = (Problem::heavy - Problem::light) / (Problem::heavy + Problem::light);
  return std::sqrt(atwood * -Problem::gravity * k * std::tanh(k * Problem::height / 2));
}

}  // namespace euler
