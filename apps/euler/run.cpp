// The Rayleigh-Taylor instability in three dimensions: the compressible Euler equations on a Grid
// over all devices. In a job of several processes, process 0 looks at the fields and writes.
#include <cmath>
#include <cstdio>
#include <limits>

#include "common/figures.hpp"
#include "common/host_memory.hpp"
#include "common/median.hpp"
#include "report.hpp"
#include "simulation.hpp"

namespace {

using namespace meshpost;
using namespace euler;

void show_progress(u64 done, u64 all) {
  std::fprintf(stderr, "\r[%-40.*s] %3llu %%", static_cast<int>(40 * done / all),
               "========================================", 100 * done / all);
  if (done == all) std::fprintf(stderr, "\n");
}

/// The seconds of a run in which no device computed, if they are known.
void add_waiting(Times& times, GridResult const& result) {
  if (result.busy.empty()) return;
  double const busy = *std::max_element(result.busy.begin(), result.busy.end());
  times.waiting.push_back(std::max(0.0, result.seconds - busy));
}

/// The first run, with frames, files and a bar.
void simulate(World const& world, Simulation& simulation, Options const& options,
              Outcome& outcome) {
  bool const first = world.process() == 0;
  // All processes must launch equally often, but may not all have a terminal.
  bool const bar = options.steps > 0 && options.shows_progress() &&
                   (options.progress == "always" || world.processes() == 1);
  auto const keep = [&] {
    simulation.in_first([&] {
      auto const seen = simulation.look();
      outcome.frames.push_back(seen.frame(simulation.state()));
      auto const& slice = seen.slice();
      outcome.slices.insert(outcome.slices.end(), slice.begin(), slice.end());
      bool const last = outcome.frames.size() > 1;
      if (!options.save.empty() && last) save(options.save, simulation.read());
    });
  };
  keep();
  double& seconds = outcome.times.seconds.emplace_back(0);
  u64 const every = options.every;
  u64 const chunk = bar ? std::max<u64>(1, options.steps / 50) : every;
  for (u64 done = 0; done < options.steps;) {
    u64 const count = std::min({chunk, every - done % every, options.steps - done});
    seconds += simulation.advance(count).seconds;
    done += count;
    if (bar && first) show_progress(done, options.steps);
    if (done % every == 0 || done == options.steps) keep();
  }
}

Outcome compute(Options const& options, State const& start, WorldOptions const& where) {
  World world(where);
  Outcome outcome = outcome_of(world);
  Simulation simulation(world, options, start);
  outcome.cut = simulation.grid().boxes().describe();
  simulation.in_first([&] {
    for (auto const* file :
         {&options.save, &options.slices, &options.initial, &options.output, &options.json})
      if (!file->empty()) apps::check_writable(*file);
  });
  simulate(world, simulation, options, outcome);
  // A loaded device and a first launch take longer, so the first run does not count. In half of the
  // others devices measure for how long they compute.
  if (options.repetitions > 0) outcome.times.seconds.clear();
  for (u32 run = 0; run < 2 * options.repetitions; ++run) {
    bool const measures = run % 2 == 1;
    simulation.fill(start);
    auto const result = simulation.advance(options.steps, measures);
    if (measures) add_waiting(outcome.times, result);
    else outcome.times.seconds.push_back(result.seconds);
  }
  if (world.process() == 0 && (options.check || !options.output.empty()))
    outcome.end = simulation.read();
  return outcome;
}

/// The result of one device, of process 0 alone.
State compute_alone(Options options, State const& start, std::string const& device) {
  WorldOptions where;
  where.devices = device;
  where.alone = true;
  where.deadline = std::chrono::milliseconds(0);  // a rank may compute for long
  World world(where);
  options.shares.clear();
  Simulation simulation(world, options, start);
  simulation.advance(options.steps);
  return simulation.read();
}

}  // namespace

int euler::run(Options options) {
  State const start = begin(options);
  WorldOptions where;
  where.devices = options.devices;
  where.ranks = options.ranks;
  if (where.apart) options.exchange = "through-host";  // by MESHPOST_REACH
  where.apart = options.exchange == "through-host";
  Outcome outcome = compute(options, start, where);
  if (outcome.process != 0) return 0;
  if (options.check) {
    auto const alone = compute_alone(options, start, outcome.reference);
    outcome.checks = {differing_cells(alone, outcome.end), asymmetric_cells(outcome.end)};
  }
  return report(options, start, outcome) ? 0 : 1;
}
