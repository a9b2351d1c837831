// A step of apps/diffusion by number of devices: weak scaling (320 rows a device) and strong
// scaling (320 in all).
#include <benchmark/benchmark.h>

#include "apps/diffusion/kernel.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;
using diffusion::Diffusion;
using diffusion::Shape;

/// Axes: devices, columns, strong (0: weak). The field is zero: the time does not depend on it.
void diffusion_step(benchmark::State& state) {
  auto const world = bench::world(static_cast<u32>(state.range(0)));
  if (!world) {
    state.SkipWithError("needs more devices");
    return;
  }
  u32 const rows = 320 * (state.range(2) != 0 ? 1 : world->device_count());
  u32 const owners = std::min(world->size(), rows / diffusion::halo);
  Shape const shape{26, rows, static_cast<u32>(state.range(1)), owners, world->ranks_per_device()};
  auto const parts = diffusion::parts(shape, world->size());
  Diffusion<float> const kernel{
      {world->window<float>(parts, Tags{1}), world->window<float>(parts, Tags{1})},
      {shape, 1.0f},
      0,
      bench::kind() == "cpu" ? 20u : 1000u};
  for (auto _ : state) {
    auto const seconds = world->run(kernel, diffusion::launch_on<float>(*world)).seconds;
    state.SetIterationTime(seconds / kernel.steps);
  }
  u64 const points = shape.row_size() * rows;
  state.counters["points"] = static_cast<double>(points);
  state.SetBytesProcessed(static_cast<i64>(2 * points * sizeof(float)) * state.iterations());
  for (auto const& field : kernel.fields) world->free(field);
}

BENCHMARK(diffusion_step)
    ->ArgNames({"devices", "columns", "strong"})
    ->ArgsProduct({{1, 2, 4, 8}, {128, 1024}, {0, 1}})
    ->Iterations(3)
    ->UseManualTime();

}  // namespace
