// COSMO horizontal diffusion over all ranks of all devices. Each rank communicates only with its
// two neighbours. In a job of several processes, process 0 reads the field and writes the result.
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <span>

#include "common/figures.hpp"
#include "kernel.hpp"
#include "options.hpp"
#include "rows.hpp"

namespace {

using namespace meshpost;
using diffusion::Diffusion;
using diffusion::Field;
using diffusion::Options;
using diffusion::Shape;

struct Outcome {
  Field result;                      // in process 0
  std::vector<std::string> devices;  // of this process
  std::string reference;             // the device to compare with
  u32 process = 0, processes = 1, device_count = 0, ranks = 0, owners = 0;
  double seconds = 0;
  u64 exchanged = 0;  // bytes that crossed between devices
};

void show_progress(u32 done, u32 all) {
  std::fprintf(stderr, "\r[%-40.*s] %3u %%", static_cast<int>(40 * done / all),
               "========================================", 100 * done / all);
  if (done == all) std::fprintf(stderr, "\n");
}

// All processes must launch equally often, but may not all have a terminal: "auto" is for one
// process.
bool shows_progress(Options const& options, World const& world) {
  return options.iterations > 0 && options.shows_progress() &&
         (options.progress == "always" || world.processes() == 1);
}

template <class Real>
Outcome compute(Field const& field, Options const& options, WorldOptions const& where) {
  World world(where);
  bool const first = world.process() == 0, progress = shows_progress(options, world);
  Shape const shape{field.levels, field.rows, field.columns,
                    std::max(1u, std::min(world.size(), field.rows / diffusion::halo)),
                    world.ranks_per_device()};
  Outcome outcome{
      field,        {},          "cpu:1", world.process(), world.processes(), world.device_count(),
      world.size(), shape.owners};
  for (auto const& device : world.devices())
    outcome.devices.push_back(device->name() + " (" + device->info().model + ")");
  if (!world.devices().empty() && world.devices().front()->kind() != "cpu")
    outcome.reference = physical(world.devices().front())->name();

  u64 const size = shape.columns;
  u32 const each = shape.ranks_per_device;
  auto const parts = diffusion::parts(shape, world.size());
  for (u32 r = 0; r + 1 < shape.owners; ++r)
    if (r / each != (r + 1) / each)
      outcome.exchanged += 2 * shape.halo_lines() * size * sizeof(Real) * options.iterations;
  Diffusion<Real> kernel{{world.window<Real>(parts, Tags{1}, "field 0"),
                          world.window<Real>(parts, Tags{1}, "field 1")},
                         {shape, options.scheme == "cosmo" ? Real(-1) : Real(1)},
                         0,
                         0};
  auto rows = diffusion::rows_of<Real>(field);
  auto const base = [&](u32 r) { return shape.part_line(r) * size; };
  for (u32 r = 0; r < shape.owners && first; ++r)
    for (auto const& window : kernel.fields)
      window.write(RankId{r}, 0, std::span<Real const>(rows).subspan(base(r), parts[r].count));

  u32 chunk = progress ? std::max(1u, options.iterations / 50) : std::max(1u, options.iterations);
  Launch launch = diffusion::launch_on<Real>(world);
  launch.trace = options.trace;
  for (u32 step = 0; step < options.iterations; step += chunk) {
    kernel.first_step = step;
    kernel.steps = std::min(chunk, options.iterations - step);
    outcome.seconds += world.run(kernel, launch).seconds;
    launch.trace.clear();
    if (progress && first) show_progress(step + kernel.steps, options.iterations);
  }
  for (u32 r = 0; r < shape.owners && first; ++r) {
    u64 const begin = shape.first_line(r) * size, count = shape.first_line(r + 1) * size - begin;
    kernel.fields[options.iterations % 2].read(RankId{r}, begin - base(r),
                                               std::span<Real>(rows).subspan(begin, count));
  }
  diffusion::store_rows(rows, outcome.result);
  return outcome;
}

template <class Real>
int run_with(Options const& options) {
  auto const field = diffusion::read_field(options.input);
  if (field.rows < 5 || field.columns < 5 || field.levels < 1)
    throw std::runtime_error(options.input + ": " + std::to_string(field.rows) + " rows and " +
                             std::to_string(field.columns) +
                             " columns; the stencil needs at least 5 of each");
  WorldOptions where;
  where.devices = options.devices;
  where.ranks = options.ranks;
  auto const outcome = compute<Real>(field, options, where);
  if (outcome.process != 0) return 0;
  double const points = static_cast<double>(field.values.size()) * options.iterations;
  double const rate = outcome.seconds > 0 ? points / outcome.seconds : 0;

  nlohmann::json identical;  // null: not checked
  if (options.check) {
    WorldOptions alone = where;
    alone.devices = outcome.reference;
    alone.alone = true;
    alone.ranks = 1;
    alone.deadline = std::chrono::milliseconds(0);
    Options quiet = options;
    quiet.trace.clear();
    quiet.progress = "never";
    identical = compute<Real>(field, quiet, alone).result.values == outcome.result.values;
  }
  if (!options.output.empty()) diffusion::write_npy(options.output, outcome.result);

  for (auto const& device : outcome.devices) std::printf("device      %s\n", device.c_str());
  if (outcome.processes > 1)
    std::printf("processes   %u, with %u devices\n", outcome.processes, outcome.device_count);
  std::printf("ranks       %u, of which %u own rows\n", outcome.ranks, outcome.owners);
  std::printf("field       %u x %u x %u in %s, scheme %s\n", field.levels, field.rows,
              field.columns, options.precision.c_str(), options.scheme.c_str());
  std::printf("time        %.3f s for %u iterations, %.4g points/s\n", outcome.seconds,
              options.iterations, rate);
  std::printf("exchanged   %llu bytes between devices\n", outcome.exchanged);
  std::printf("one rank    %s\n", identical.is_null() ? "not compared"
                                  : identical         ? "equal to the bit"
                                                      : "DIFFERENT");
  if (!options.json.empty()) {
    nlohmann::json const all = {
        {"processes", outcome.processes},   {"device_count", outcome.device_count},
        {"devices", outcome.devices},       {"ranks", outcome.ranks},
        {"owners", outcome.owners},         {"seconds", outcome.seconds},
        {"points_per_second", rate},        {"exchanged_bytes", outcome.exchanged},
        {"iterations", options.iterations}, {"precision", options.precision},
        {"scheme", options.scheme},         {"shape", {field.levels, field.rows, field.columns}},
        {"bit_identical", identical}};
    apps::write_figures(options.json, all);
  }
  return identical.is_boolean() && !identical.get<bool>() ? 1 : 0;
}

}  // namespace

int diffusion::run(Options const& options) {
  try {
    return options.precision == "double" ? run_with<double>(options) : run_with<float>(options);
  } catch (std::bad_alloc const&) {
    throw Error(Kind::out_of_memory, "--input " + options.input, "the host's memory is used up",
                "choose a smaller field");
  }
}
