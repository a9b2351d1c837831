#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/grid_text.hpp"
#include "common/host_memory.hpp"

namespace euler {
namespace {

using meshpost::apps::refuse;

constexpr double usual_cfl = 0.8, usual_amplitude = 0.01;
constexpr u64 most_along = u64{1} << 20;  // of a direction

std::string text_of(meshpost::Extents3 const& cells) {
  return std::to_string(cells.x) + "x" + std::to_string(cells.y) + "x" + std::to_string(cells.z);
}

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Problem problem_of(Options const& options) {
  Problem problem{{24, 24, 48}, options.amplitude.value_or(usual_amplitude)};
  if (!options.grid.empty()) problem.cells = meshpost::apps::read_grid(options.grid, 3);
  if (!(problem.amplitude >= 0 && problem.amplitude <= 100))
    refuse("--amplitude " + text_of(problem.amplitude),
           "it is no number from 0 to 100; the speed of sound is about 1", "choose 0.01 or less");
  return problem;
}

State restarted(Options const& options) {
  auto state = load(options.restart);
  auto const& cells = state.problem.cells;
  if (!options.grid.empty() &&
      text_of(meshpost::apps::read_grid(options.grid, 3)) != text_of(cells))
    refuse("--grid " + options.grid, options.restart + " has " + text_of(cells) + " cells",
           "leave --grid out");
  if (options.amplitude)
    refuse("--amplitude " + text_of(*options.amplitude),
           options.restart + " began with " + text_of(state.problem.amplitude), "leave it out");
  return state;
}

void check_size(Options const& options, Problem const& problem) {
  auto const& n = problem.cells;
  if (n.x < halo || n.y < halo || n.z < halo)
    refuse("--grid " + text_of(n), "the scheme reads 2 cells on each side of a cell",
           "choose at least 2 of each");
  if (std::max({n.x, n.y, n.z}) > most_along)
    refuse("--grid " + text_of(n),
           "a direction has more than " + std::to_string(most_along) + " cells", "choose fewer");
  double const cells =
      static_cast<double>(n.x) * static_cast<double>(n.y) * static_cast<double>(n.z);
  double const bytes = cells * components * sizeof(double), have = meshpost::apps::host_memory();
  bool const whole = options.check || !options.output.empty() || !options.save.empty();
  if (whole && bytes > have)
    refuse("--grid " + text_of(n),
           "the host would hold its values, " + text_of(bytes * 1e-9) + " GB, and has " +
               text_of(have * 1e-9) + " GB",
           "choose fewer cells, or --no-check without --output and --save");
  double const slices = static_cast<double>(n.x) * static_cast<double>(n.z) * sizeof(double);
  double const frames = static_cast<double>(options.steps / options.every + 2);
  if (slices * frames > have)
    refuse("--grid " + text_of(n),
           "the slices of " + text_of(frames) + " frames take " + text_of(slices * frames * 1e-9) +
               " GB, and this host has " + text_of(have * 1e-9) + " GB",
           "choose fewer cells, or fewer frames by --frames");
}

u64 steps_for(double time, double dt) {
  double const steps = std::ceil(time / dt);
  if (!(steps >= 0 && steps <= static_cast<double>(most_steps)))
    refuse("--time " + text_of(time),
           "it takes " + text_of(steps) + " steps of " + text_of(dt) + ", and " +
               std::to_string(most_steps) + " is the limit",
           "choose a time from 0 on");
  return static_cast<u64>(steps);
}

void set_step(Options const& options, State& state) {
  for (auto const* given : {&options.dt, &options.cfl})
    if (*given && !(std::isfinite(**given) && **given > 0))
      refuse((given == &options.dt ? "--dt " : "--cfl ") + text_of(**given),
             "it is no finite number above 0", "choose a Courant number up to 1 by --cfl");
  double const rate =
      state.largest_rate(options.restart.empty() ? "--amplitude" : "--restart " + options.restart);
  if (options.dt) state.dt = *options.dt;
  else if (options.cfl) state.dt = *options.cfl / rate;
  else if (options.restart.empty()) state.dt = usual_cfl / rate;
  double const courant = state.dt * rate;
  // By less than what a division rounds: --cfl 1 is allowed.
  if (courant > Problem::most_cfl * (1 + 1e-12))
    refuse(options.dt    ? "--dt " + text_of(*options.dt)
           : options.cfl ? "--cfl " + text_of(*options.cfl)
                         : "--restart " + options.restart,
           "the step's Courant number is " + text_of(courant) + ", and 1 is the limit",
           options.cfl ? "choose --cfl 1 or less"
                       : "choose --dt " + text_of(Problem::most_cfl / rate) + " or less");
}

}  // namespace

State begin(Options& options) {
  State state;
  if (options.restart.empty()) state.problem = problem_of(options);
  else state = restarted(options);
  set_step(options, state);
  if (options.time) options.steps = steps_for(*options.time, state.dt);
  if (options.every == 0)
    options.every = std::max<u64>(1, (options.steps + options.frames - 1) / options.frames);
  check_size(options, state.problem);
  return state;
}

std::vector<double> read_shares(std::string const& text) {
  std::vector<double> shares;
  for (char const *at = text.data(), *end = at + text.size(); at < end;) {
    double value = 0;
    auto const [next, error] = std::from_chars(at, end, value);
    bool const whole = error == std::errc{} && (next == end || (*next == ',' && next + 1 < end));
    if (!whole || !std::isfinite(value) || value < 0)
      meshpost::apps::refuse("--shares " + text, "it is no list of numbers from 0 on",
                             "write one for each device, such as 1,2.5,1, or 'measured'");
    shares.push_back(value);
    at = next + 1;
  }
  return shares;
}

}  // namespace euler
