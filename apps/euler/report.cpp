#include "report.hpp"

#include <meshpost/device/device.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/figures.hpp"
#include "common/median.hpp"

namespace euler {
namespace {

using meshpost::apps::write_npy;
using nlohmann::json;

void write_values(std::string const& file, State const& state) {
  auto const& n = state.problem.cells;
  write_npy(file, "<f8", {components, n.z, n.y, n.x}, std::as_bytes(std::span(state.values)));
}

State with_values(State state) {
  if (!state.values.empty()) return state;
  auto const& n = state.problem.cells;
  InitialState const start(state.problem);
  std::vector<double> values(components * n.z * n.y * n.x);
  for (u32 c = 0; c < components; ++c)
    for (i64 z = 0; z < static_cast<i64>(n.z); ++z)
      for (i64 y = 0; y < static_cast<i64>(n.y); ++y)
        for (i64 x = 0; x < static_cast<i64>(n.x); ++x)
          values[state.place(x, y, z, c)] = start.at(x, y, z, c);
  state.values = std::move(values);
  return state;
}

json figures(Options const& options, State const& start, Outcome const& outcome, double drift,
             double rate) {
  auto const& problem = start.problem;
  auto const equations = problem.equations(start.dt);
  json frames = json::array();
  for (auto const& frame : outcome.frames) frames.push_back(json_of(frame));
  json checks;  // null: not checked
  if (outcome.checks)
    checks = {{"differing_cells", outcome.checks->differing},
              {"asymmetric_cells", outcome.checks->asymmetric}};
  return {{"processes", outcome.processes},
          {"device_count", outcome.device_count},
          {"devices", outcome.devices},
          {"ranks_per_device", outcome.ranks_per_device},
          {"cells", {problem.cells.x, problem.cells.y, problem.cells.z}},
          {"cut", outcome.cut},
          {"size", {Problem::width, Problem::width, Problem::height}},
          {"first_step", start.step},
          {"steps", options.steps},
          {"dt", start.dt},
          {"amplitude", problem.amplitude},
          {"gamma", equations.gamma},
          {"gravity", equations.gravity},
          {"per_cell", equations.per_cell},
          {"hydrostatic", equations.hydrostatic},
          {"damping", equations.damping},
          {"growth_rates", {growth_rate(1, 0), growth_rate(0, 1), growth_rate(1, 1)}},
          {"execution", options.execution},
          {"exchange", options.exchange},
          {"seconds", outcome.times.seconds},
          {"waiting", outcome.times.waiting},
          {"cells_per_second", rate},
          {"mass_drift", drift},
          {"checks", checks},
          {"frames", frames},
          {"initial", options.initial},
          {"output", options.output},
          {"slices", options.slices}};
}

}  // namespace

Outcome outcome_of(meshpost::World const& world) {
  Outcome outcome;
  outcome.process = world.process(), outcome.processes = world.processes();
  outcome.device_count = world.device_count(), outcome.ranks_per_device = world.ranks_per_device();
  outcome.reference = "cpu:1";
  for (auto const& device : world.devices())
    outcome.devices.push_back(device->name() + " (" + device->info().model + ")");
  if (!world.devices().empty() && !world.devices().front()->in_host_memory())
    outcome.reference = physical(world.devices().front())->name();
  return outcome;
}

u64 differing_cells(State const& a, State const& b) {
  u64 const cells = a.values.size() / components;
  u64 count = 0;
  for (u64 cell = 0; cell < cells; ++cell) {
    bool same = true;
    for (u32 c = 0; c < components; ++c)
      same = same && std::memcmp(&a.values[c * cells + cell], &b.values[c * cells + cell],
                                 sizeof(double)) == 0;
    count += same ? 0 : 1;
  }
  return count;
}

bool report(Options const& options, State const& start, Outcome const& outcome) {
  auto const& n = start.problem.cells;
  auto const& first = outcome.frames.front();
  auto const& last = outcome.frames.back();
  double const seconds = meshpost::apps::median(outcome.times.seconds),
               waiting = meshpost::apps::median(outcome.times.waiting);
  double const steps = static_cast<double>(std::max<u64>(1, options.steps));
  double const updates = static_cast<double>(n.x * n.y * n.z) * static_cast<double>(options.steps);
  double const rate = seconds > 0 ? updates / seconds : 0;
  // Each stage rounds each cell's density by a few units in the last place.
  double const drift = last.mass / first.mass - 1;
  double const limit =
      (8 + 3 * static_cast<double>(options.steps)) * std::numeric_limits<double>::epsilon();
  bool const kept = std::fabs(drift) <= limit;

  for (auto const& device : outcome.devices) std::printf("device      %s\n", device.c_str());
  if (outcome.processes > 1)
    std::printf("processes   %u, with %u devices\n", outcome.processes, outcome.device_count);
  std::printf("grid        %s, %u ranks on each device\n", outcome.cut.c_str(),
              outcome.ranks_per_device);
  std::printf("steps       %llu to %llu of %.4g: time %.4g to %.4g; Courant number %.3g to %.3g\n",
              static_cast<unsigned long long>(first.step),
              static_cast<unsigned long long>(last.step), start.dt, first.time, last.time,
              first.courant, last.courant);
  std::printf("time        %.4g ms a step, %.4g cells/s\n", 1e3 * seconds / steps, rate);
  if (outcome.times.waiting.empty())
    std::printf("exchange    %s; --repetitions and one kernel measure what it adds\n",
                options.exchange.c_str());
  else
    std::printf("exchange    %s: adds %.4g ms a step\n", options.exchange.c_str(),
                1e3 * waiting / steps);
  std::printf("waves       (1, 0), (0, 1), (1, 1): %.4g, %.4g, %.4g\n", last.modes[0],
              last.modes[1], last.modes[2]);
  std::printf("mass        %s: changed by %+.2g of it, %.2g is rounding\n",
              kept ? "kept" : "NOT KEPT", drift, limit);
  bool passed = kept;
  if (outcome.checks) {
    auto const [differing, asymmetric] = *outcome.checks;
    if (differing == 0) std::printf("one device  equal to the bit\n");
    else
      std::printf("one device  DIFFERENT in %llu cells\n",
                  static_cast<unsigned long long>(differing));
    if (asymmetric == 0) std::printf("symmetry    kept to the bit\n");
    else
      std::printf("symmetry    LOST in %llu cells\n", static_cast<unsigned long long>(asymmetric));
    passed = passed && differing == 0 && asymmetric == 0;
  }
  if (!options.initial.empty()) write_values(options.initial, with_values(start));
  if (!options.output.empty()) write_values(options.output, outcome.end);
  if (!options.slices.empty())
    write_npy(options.slices, "<f8", {outcome.frames.size(), n.z, n.x},
              std::as_bytes(std::span(outcome.slices)));
  if (!options.json.empty())
    meshpost::apps::write_figures(options.json, figures(options, start, outcome, drift, rate));
  return passed;
}

}  // namespace euler
