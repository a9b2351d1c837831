#include "observe.hpp"

#include <meshpost/base/error.hpp>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numbers>

namespace euler {
namespace {

using meshpost::Error;
using meshpost::Kind;

std::vector<double> wave(u64 cells) {
  std::vector<double> all(cells);
  for (u64 i = 0; i < cells; ++i)
    all[i] = std::cos(2 * std::numbers::pi *
                      ((static_cast<double>(i) + 0.5) / static_cast<double>(cells) - 0.5));
  return all;
}

}  // namespace

nlohmann::json json_of(Frame const& frame) {
  return {{"step", frame.step},       {"time", frame.time},     {"mass", frame.mass},
          {"kinetic", frame.kinetic}, {"energy", frame.energy}, {"courant", frame.courant},
          {"modes", frame.modes}};
}

Observer::Observer(Problem const& problem)
    : problem_(problem), slice_(problem.cells.z * problem.cells.x) {
  wave_[0] = wave(problem.cells.x), wave_[1] = wave(problem.cells.y);
}

void Observer::add(meshpost::Box const& box, std::span<double const> values) {
  auto const& n = problem_.cells;
  u64 const cells = box.cells();
  // The gases meet between two planes of cells, or in one.
  i64 const below = static_cast<i64>((n.z - 1) / 2), above = static_cast<i64>(n.z / 2);
  for (u64 i = 0; i < cells; ++i) {
    auto const cell = box.cell_at(i);
    double u[components];
    for (u32 c = 0; c < components; ++c) u[c] = values[c * cells + i];
    double const rate = signal_rate(problem_, u);
    if (!std::isnan(fastest_) && !(rate <= fastest_)) fastest_ = rate, where_ = cell;
    double const speed = u[momentum_z] / u[density];
    double const height =
        (static_cast<double>(cell.z) + 0.5) * problem_.size(2) - Problem::height / 2;
    sums_.mass += u[density];
    sums_.kinetic += (u[momentum_x] * u[momentum_x] + u[momentum_y] * u[momentum_y] +
                      u[momentum_z] * u[momentum_z]) /
                     (2 * u[density]);
    sums_.energy += u[energy] - Problem::gravity * height * u[density];
    if (cell.y == static_cast<i64>(n.y / 2))
      slice_[static_cast<u64>(cell.z) * n.x + static_cast<u64>(cell.x)] = u[density];
    if (cell.z == below || cell.z == above) {
      double const along_x = wave_[0][static_cast<u64>(cell.x)],
                   along_y = wave_[1][static_cast<u64>(cell.y)];
      sums_.modes[0] += 2 * along_x * speed;
      sums_.modes[1] += 2 * along_y * speed;
      sums_.modes[2] += 4 * along_x * along_y * speed;
    }
  }
}

Frame Observer::frame(State const& state) const {
  double const courant = fastest_ * state.dt;
  if (!(courant <= Problem::stable_cfl)) {
    std::string const cell = "cell (" + std::to_string(where_.x) + ", " + std::to_string(where_.y) +
                             ", " + std::to_string(where_.z) + ")";
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, " has the Courant number %.3g", courant);
    throw Error(
        Kind::kernel_failed, "step " + std::to_string(state.step),
        std::isnan(courant)
            ? cell + " has no positive density and pressure"
            : cell + numbers + ", and the scheme is stable to 1.25: the flow has become faster",
        "choose a smaller --dt or --cfl, or begin at a file of --save with a smaller --dt");
  }
  Frame frame;
  auto const& n = problem_.cells;
  auto const planes = static_cast<double>(n.x * n.y * (n.z % 2 == 0 ? 2 : 1));
  frame.step = state.step, frame.time = state.time, frame.courant = courant;
  frame.mass = static_cast<double>(sums_.mass) * problem_.volume();
  frame.kinetic = static_cast<double>(sums_.kinetic) * problem_.volume();
  frame.energy = static_cast<double>(sums_.energy) * problem_.volume();
  for (u32 m = 0; m < 3; ++m) frame.modes[m] = static_cast<double>(sums_.modes[m]) / planes;
  return frame;
}

u64 asymmetric_cells(State const& state) {
  auto const& n = state.problem.cells;
  i64 const last_x = static_cast<i64>(n.x) - 1, last_y = static_cast<i64>(n.y) - 1;
  u64 wrong = 0;
  for (i64 z = 0; z < static_cast<i64>(n.z); ++z)
    for (i64 y = 0; y <= last_y; ++y)
      for (i64 x = 0; x <= last_x; ++x) {
        bool same = true;
        for (u32 c = 0; c < components; ++c) {
          double const value = state.at(x, y, z, c);
          // NaN is equal to nothing, so it counts.
          same = same && state.at(last_x - x, y, z, c) == Equations::mirrored(value, c, 1) &&
                 state.at(x, last_y - y, z, c) == Equations::mirrored(value, c, 2);
        }
        wrong += same ? 0 : 1;
      }
  return wrong;
}

}  // namespace euler
