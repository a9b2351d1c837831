#pragma once
// The problem that both versions solve: the domain, the particles at the beginning, their energy.
#include <string>
#include <vector>

#include "lists.hpp"
#include "model.hpp"
#include "options.hpp"

namespace particles {

/// The whole domain and its particles, for all devices together.
struct Problem {
  double width, length, cutoff, dt, strength, speed;
  u64 particles, seed;
  u32 steps;
  u32 segments;
  double height;  ///< of a segment
  u32 chunks;     ///< of a segment: its capacity in steps of 32

  u32 capacity() const { return chunks * lanes; }
  template <class Real>
  Model<Real> model() const {
    Model<Real> model{};
    model.cutoff = static_cast<Real>(cutoff);
    model.cutoff_squared = model.cutoff * model.cutoff;
    model.inverse_cutoff = Real(1) / model.cutoff;
    model.strength = static_cast<Real>(strength);
    model.dt = static_cast<Real>(dt);
    model.width = static_cast<Real>(width);
    model.height = static_cast<Real>(height);
    model.reach = model.height < model.width ? model.height : model.width;
    model.segments = segments;
    return model;
  }
};

/// The problem for so many devices. \throws Error(bad_argument) naming the option
Problem make_problem(Options const& options, u32 devices);

/// A particle, by number: `y` counts from the lower edge of `segment`. These five columns are what
/// files hold.
struct Row {
  double x, y, vx, vy, segment;
};
using State = std::vector<Row>;

/// Where all begin, with the velocities of half a step before. Values are those of `Real`.
template <class Real>
State initial_state(Problem const& problem);

struct Energy {
  double kinetic = 0, potential = 0;
  double momentum_x = 0, momentum_y = 0;

  double total() const { return kinetic + potential; }
};
/// Of a state, in double precision; velocities are taken half a step further, to the time of the
/// positions.
Energy energy_of(Problem const& problem, State const& state);

/// Particles of each segment.
std::vector<u32> counts_of(Problem const& problem, State const& state);

}  // namespace particles
