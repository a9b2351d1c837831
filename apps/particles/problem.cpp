#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/host_memory.hpp"
#include "common/random.hpp"

namespace particles {
namespace {

using meshpost::apps::refuse;

std::string text(double value) {
  char line[32];
  std::snprintf(line, sizeof line, "%.6g", value);
  return line;
}

void need_positive(char const* option, double value, bool zero_too = false) {
  if (!std::isfinite(value) || value < 0 || (value == 0 && !zero_too))
    refuse(std::string(option) + " " + text(value), "it is no finite number above 0",
           zero_too ? "name one, or 0" : "name one");
}

// Refuses more than the host has: the system may promise such memory and fail at its use. Counted
// are the particles of all devices, as often as the program has them, and the lists of a device.
void need_memory(Problem const& problem, Options const& options, u32 devices) {
  bool const is_double = options.precision == "double";
  u64 const list =
      is_double ? List<double>::size(problem.chunks) : List<float>::size(problem.chunks);
  double const bytes = 6.0 * sizeof(Row) * static_cast<double>(problem.particles) +
                       5.0 * static_cast<double>(list) * problem.segments / devices;
  double const memory = meshpost::apps::host_memory();
  if (bytes > memory)
    refuse("--particles " + std::to_string(options.particles),
           "they take " + text(bytes * 1e-9) + " GB, and this host has " + text(memory * 1e-9) +
               " GB of memory",
           "choose fewer, or a smaller --capacity");
}

// A number in [0, 1) that depends on its arguments only (SplitMix64).
double random_unit(u64 seed, u64 particle, u32 which) {
  using meshpost::apps::golden, meshpost::apps::mixed;
  u64 const z = mixed(mixed(seed * golden + particle * 4 + which + golden) + golden);
  return static_cast<double>(z >> 11) * 0x1p-53;
}

// Calls visit(i, j, dx, dy) for each pair nearer than the cutoff along x and in segments that
// touch.
template <class Visit>
void each_pair(Problem const& problem, State const& state, Visit const& visit) {
  std::vector<std::vector<u32>> by_x(problem.segments);
  for (u32 i = 0; i < state.size(); ++i) by_x[static_cast<u32>(state[i].segment)].push_back(i);
  for (auto& all : by_x)
    std::ranges::sort(all, {}, [&](u32 i) { return std::pair(state[i].x, i); });
  for (u32 s = 0; s < problem.segments; ++s)
    for (u32 const i : by_x[s])
      for (u32 other = s; other < std::min(s + 2, problem.segments); ++other) {
        auto const& all = by_x[other];
        auto j = std::ranges::lower_bound(all, state[i].x - problem.cutoff, {},
                                          [&](u32 k) { return state[k].x; });
        for (; j != all.end() && state[*j].x < state[i].x + problem.cutoff; ++j)
          if (other != s || i < *j)
            visit(i, *j, state[i].x - state[*j].x,
                  (state[i].y - state[*j].y) - (other - s) * problem.height);
      }
}

std::vector<Vector<double>> forces_on(Problem const& problem, State const& state) {
  std::vector<Vector<double>> forces(state.size(), {0, 0});
  auto const model = problem.model<double>();
  each_pair(problem, state, [&](u32 i, u32 j, double dx, double dy) {
    add_force(model, dx, dy, forces[i]);
    add_force(model, -dx, -dy, forces[j]);
  });
  return forces;
}

}  // namespace

Problem make_problem(Options const& options, u32 devices) {
  need_positive("--width", options.width);
  need_positive("--length", options.length);
  need_positive("--cutoff", options.cutoff);
  need_positive("--dt", options.dt);
  need_positive("--strength", options.strength, true);
  need_positive("--speed", options.speed, true);
  std::string const cutoff = "--cutoff " + text(options.cutoff);
  if (options.cutoff > options.width)
    refuse(cutoff, "it is more than the domain's width, " + text(options.width),
           "choose a smaller one, or a larger --width");
  double const length = options.length * devices, segments = std::floor(length / options.cutoff);
  if (segments < 2.0 * devices)
    refuse(cutoff,
           "segments as high as it are " + text(std::max(0.0, segments)) +
               " in a domain of length " + text(length) + ", and each of " +
               std::to_string(devices) + " devices needs two",
           "choose a smaller one, or a larger --length");
  if (segments > 1e8)
    refuse(cutoff, text(segments) + " segments are too many; 100,000,000 are the limit",
           "choose a larger one, or a smaller --length");
  u64 const particles = options.particles * devices;
  if (options.particles == 0 || particles >= u64{1} << 31)
    refuse("--particles " + std::to_string(options.particles),
           "there are from 1 to 2147483647 particles on all devices together",
           "choose a number between");
  double const mean = static_cast<double>(particles) / segments;
  double const capacity =
      options.capacity > 0 ? options.capacity : std::ceil(mean + 6 * std::sqrt(mean));
  // Offsets within a segment are 32-bit numbers.
  if (capacity > 1e7)
    refuse("--capacity " + text(capacity), "a segment holds at most 10,000,000 particles",
           "choose fewer --particles, or a larger --length");
  u32 const chunks = (static_cast<u32>(capacity) + lanes - 1) / lanes;
  u32 const count = static_cast<u32>(segments);
  Problem const problem{options.width,    length,        options.cutoff, options.dt,
                        options.strength, options.speed, particles,      options.seed,
                        options.steps,    count,         length / count, chunks};
  need_memory(problem, options, devices);
  return problem;
}

template <class Real>
State initial_state(Problem const& problem) {
  State state(problem.particles);
  for (u64 i = 0; i < state.size(); ++i) {
    auto const unit = [&](u32 which) { return random_unit(problem.seed, i, which); };
    auto const velocity = [&](u32 which) {
      return static_cast<Real>(problem.speed * (2 * unit(which) - 1));
    };
    double const y = unit(1) * problem.length;
    double const segment = std::min<double>(std::floor(y / problem.height), problem.segments - 1);
    double const above = std::clamp(y - segment * problem.height, 0.0, problem.height);
    state[i] = {static_cast<Real>(unit(0) * problem.width), static_cast<Real>(above), velocity(2),
                velocity(3), segment};
  }
  auto const forces = forces_on(problem, state);
  for (u64 i = 0; i < state.size(); ++i) {
    state[i].vx = static_cast<Real>(state[i].vx - forces[i].x * problem.dt / 2);
    state[i].vy = static_cast<Real>(state[i].vy - forces[i].y * problem.dt / 2);
  }
  auto const counts = counts_of(problem, state);
  auto const most = std::ranges::max_element(counts);
  if (*most > problem.capacity())
    refuse("--capacity " + std::to_string(problem.capacity()),
           "segment " + std::to_string(most - counts.begin()) + " begins with " +
               std::to_string(*most) + " particles",
           "choose at least " + std::to_string(*most + *most / 4 + lanes));
  return state;
}

template State initial_state<float>(Problem const&);
template State initial_state<double>(Problem const&);

Energy energy_of(Problem const& problem, State const& state) {
  Energy energy;
  auto const forces = forces_on(problem, state);
  for (u64 i = 0; i < state.size(); ++i) {
    double const vx = state[i].vx + forces[i].x * problem.dt / 2;
    double const vy = state[i].vy + forces[i].y * problem.dt / 2;
    energy.kinetic += (vx * vx + vy * vy) / 2;
    energy.momentum_x += vx;
    energy.momentum_y += vy;
  }
  each_pair(problem, state, [&](u32, u32, double dx, double dy) {
    double const r = std::sqrt(dx * dx + dy * dy), q = 1 - r / problem.cutoff;
    if (q > 0) energy.potential += problem.strength * problem.cutoff / 3 * q * q * q;
  });
  return energy;
}

std::vector<u32> counts_of(Problem const& problem, State const& state) {
  std::vector<u32> counts(problem.segments, 0);
  for (auto const& row : state) ++counts[static_cast<u32>(row.segment)];
  return counts;
}

}  // namespace particles
