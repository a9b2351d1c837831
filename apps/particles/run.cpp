// Particles in a plane that repel each other: one kernel for all steps, beside two kernels a step
// with communication by the host. In a job of several processes, process 0 compares and writes.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "versions.hpp"

namespace {

using namespace meshpost;
using namespace particles;
using nlohmann::json;

struct Frame {
  u32 step;
  Energy energy;
};

State state_of(std::vector<std::byte> const& bytes) {
  State state(bytes.size() / sizeof(Row));
  std::memcpy(state.data(), bytes.data(), bytes.size());
  return state;
}

json json_of(Energy const& energy) {
  return {{"kinetic", energy.kinetic},
          {"potential", energy.potential},
          {"momentum", {energy.momentum_x, energy.momentum_y}}};
}

void write_rows(std::string const& file, std::vector<u64> const& shape, State const& rows) {
  apps::write_npy(file, "<f8", shape, std::as_bytes(std::span(rows)));
}

// Runs the one kernel once more, in pieces. Collective; the frames are process 0's.
template <class Real>
std::vector<Frame> film(World const& world, Versions<Real>& versions, Problem const& problem,
                        Options const& options) {
  bool const first = world.process() == 0;
  u32 const every = options.every > 0 ? options.every : std::max(1u, problem.steps / 20);
  std::vector<Frame> frames;
  State rows;
  auto const keep = [&](u32 step, State const& state) {
    frames.push_back({step, energy_of(problem, state)});
    rows.insert(rows.end(), state.begin(), state.end());
  };
  versions.reset();
  if (first) keep(0, versions.start());
  for (u32 step = 0; step < problem.steps; step += every) {
    u32 const count = std::min(every, problem.steps - step);
    versions.run_steps({}, count);
    auto const bytes = versions.result();
    if (first) keep(step + count, state_of(bytes));
  }
  if (first) write_rows(options.frames, {frames.size(), problem.particles, 5}, rows);
  return frames;
}

// The result of one device and other ranks. Of process 0 alone.
template <class Real>
std::vector<std::byte> result_of_one(Problem const& problem, WorldOptions where,
                                     std::string const& device, u32 ranks) {
  where.devices = device;
  where.ranks = ranks;
  where.alone = true;
  where.deadline = std::chrono::milliseconds(0);  // a rank may compute for long
  World world(where);
  Versions<Real> versions(world, problem);
  versions.reset();
  versions.run_kernel({});
  return versions.result();
}

template <class Real>
int run_with(Options const& options) {
  auto const where = apps::world_of(options);
  apps::Comparison comparison;
  json figures;
  Energy before, after;
  std::vector<Frame> frames;
  std::string device = "cpu:1";
  u32 ranks = 0;
  std::optional<Problem> made;
  {
    World world(where);
    made = make_problem(options, world.device_count());
    Versions<Real> versions(world, *made);
    comparison = apps::compare(world, versions, options);
    if (!options.frames.empty()) frames = film(world, versions, *made, options);
    if (world.process() != 0) return 0;
    figures = apps::report(world, comparison, options);
    figures["owners"] = versions.owners();
    before = energy_of(*made, versions.start());
    if (!options.initial.empty())
      write_rows(options.initial, {made->particles, 5}, versions.start());
    if (!world.devices().empty() && !world.devices().front()->in_host_memory())
      device = physical(world.devices().front())->name();
    ranks = std::max(1u, world.ranks_per_device() / 3);
  }
  auto const& problem = *made;
  auto const state = state_of(comparison.result);
  after = energy_of(problem, state);
  double const drift = (after.total() - before.total()) / std::max(before.total(), 1e-300);
  std::printf("problem     %llu particles in %g x %g, %u segments of %u slots, %u steps, %s\n",
              static_cast<unsigned long long>(problem.particles), problem.width, problem.length,
              problem.segments, problem.capacity(), problem.steps, options.precision.c_str());
  std::printf("energy      %.8g before, %.8g after (%+.2g of it)\n", before.total(), after.total(),
              drift);
  std::printf("momentum    (%.6g, %.6g) before, (%.6g, %.6g) after; walls change it\n",
              before.momentum_x, before.momentum_y, after.momentum_x, after.momentum_y);
  json same;  // null: not checked
  if (options.check) {
    auto const alone = result_of_one<Real>(problem, where, device, ranks);
    same = alone == comparison.result;
    std::printf("one device  %s, with %u ranks\n", same ? "equal to the bit" : "DIFFERENT", ranks);
  }
  if (!options.output.empty()) write_rows(options.output, {problem.particles, 5}, state);
  if (!options.json.empty()) {
    json energies = json::array();
    for (auto const& frame : frames) {
      energies.push_back(json_of(frame.energy));
      energies.back()["step"] = frame.step;
    }
    figures.update({{"particles", problem.particles},
                    {"width", problem.width},
                    {"length", problem.length},
                    {"segments", problem.segments},
                    {"segment_height", problem.height},
                    {"capacity", problem.capacity()},
                    {"cutoff", problem.cutoff},
                    {"dt", problem.dt},
                    {"strength", problem.strength},
                    {"steps", problem.steps},
                    {"precision", options.precision},
                    {"before", json_of(before)},
                    {"after", json_of(after)},
                    {"energy_drift", drift},
                    {"one_device", same},
                    {"frames", energies},
                    {"initial", options.initial},
                    {"output", options.output},
                    {"film", options.frames}});
    apps::write_figures(options.json, figures);
  }
  return comparison.identical && (same.is_null() || same.get<bool>()) ? 0 : 1;
}

}  // namespace

int particles::run(Options const& options) {
  return options.precision == "double" ? run_with<double>(options) : run_with<float>(options);
}
