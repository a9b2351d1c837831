// A step of a seven-point stencil on a grid of n^3 cells. By Grid: on all devices together (strong
// scaling), or n layers for each (weak). Beside it a plain kernel on one GPU, or plain loops on a
// core.
#include <benchmark/benchmark.h>

#include <meshpost/array/grid.hpp>

#include "apps/common/enqueue.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;

u64 grid_steps() { return bench::kind() == "cpu" ? 10 : 200; }

struct Seven {
  double rate = 0.1;

  MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
                              GridFields<double> const& fields, GridTime at) const {
    auto const old = fields.old(at.step % 2);
    auto const now = fields[1 - at.step % 2];
    auto const row = static_cast<i64>(old.frame().row), plane = static_cast<i64>(old.frame().plane);
    threads.each(box, [&](i64 x, i64 y, i64 z) {
      double const* const u = old.at(x, y, z);
      double const sum = u[-1] + u[1] + u[-row] + u[row] + u[-plane] + u[plane];
      *now.at(x, y, z) = u[0] + rate * (sum - 6 * u[0]);
    });
  }
};

void set_counters(benchmark::State& state, u64 cells, double seconds) {
  state.SetIterationTime(seconds / static_cast<double>(grid_steps()));
  state.counters["cells"] = static_cast<double>(cells);
  state.SetBytesProcessed(static_cast<i64>(2 * cells * sizeof(double)) * state.iterations());
}

GridRun how(GridExecution execution) { return {.execution = execution, .check_every = 0}; }

/// Axes: devices, n, weak, execution.
void grid_step(benchmark::State& state) {
  auto const world = bench::world(static_cast<u32>(state.range(0)));
  if (!world) {
    state.SkipWithError("needs more devices");
    return;
  }
  auto const n = static_cast<u64>(state.range(1));
  u64 const layers = state.range(2) != 0 ? n * world->device_count() : n;
  Grid<double> grid(*world, {.extents = {n, n, layers}});
  auto const run = how(static_cast<GridExecution>(state.range(3)));
  grid.run(Seven(), grid_steps() / 10 + 1, run);
  for (auto _ : state)
    set_counters(state, n * n * layers, grid.run(Seven(), grid_steps(), run).seconds);
  grid.free();
}

/// A GPU and a CPU device together, with parts in proportion to their speeds: cells in a second, of
/// both, and of each alone. Axis: n.
void grid_of_gpu_and_cpu(benchmark::State& state) {
  if (bench::kind() != "cuda") {
    state.SkipWithError("needs a GPU");
    return;
  }
  auto const n = static_cast<u64>(state.range(0));
  GridOptions options{.extents = {n, n, n}};
  auto const run = how(GridExecution::one_kernel);
  auto const speed = [&](World& world, GridOptions const& of, u64 count) {
    Grid<double> grid(world, of);
    grid.run(Seven(), count / 10 + 1, run);
    double const seconds = grid.run(Seven(), count, run).seconds;
    grid.free();
    return static_cast<double>(n * n * of.extents.z * count) / seconds;
  };
  auto const gpu = bench::first_devices(1);
  double alone[2];
  {
    World world({.devices = gpu});
    alone[0] = speed(world, options, grid_steps());
  }
  {
    World world({.devices = "cpu:1"});
    alone[1] = speed(world, options, 5);
  }
  World world({.devices = gpu + ",cpu:1"});
  options.cut.dimensions = 1;
  options.shares = measured_shares<double>(
      world, options, Seven(),
      [](Grid<double>& grid) {
        for (u32 field = 0; field < 2; ++field) grid.fill(field, [](Cell) { return 0.0; });
      },
      3);
  for (auto _ : state) {
    double const both = speed(world, options, grid_steps());
    state.SetIterationTime(static_cast<double>(n * n * n) / both);
    state.counters["of_both_alone"] = both / (alone[0] + alone[1]);
    state.counters["gpu"] = alone[0], state.counters["cpu"] = alone[1];
  }
}

struct Plain {
  double const* old;
  double* now;
  i64 n;  // with a frame of one cell around

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    i64 const row = n + 2, plane = row * row;
    auto const cell = [&](i64 x, i64 y, i64 z) {
      double const* const u = old + (z + 1) * plane + (y + 1) * row + x + 1;
      double const sum = u[-1] + u[1] + u[-row] + u[row] + u[-plane] + u[plane];
      now[(z + 1) * plane + (y + 1) * row + x + 1] = u[0] + 0.1 * (sum - 6 * u[0]);
    };
    if (stride == 1) {
      for (i64 z = 0; z < n; ++z)
        for (i64 y = 0; y < n; ++y)
          for (i64 x = 0; x < n; ++x) cell(x, y, z);
    } else {
      u32 const side = static_cast<u32>(n);
      for (u64 i = first; i < static_cast<u64>(n * n * n); i += stride) {
        u32 const line = static_cast<u32>(i / side);
        cell(static_cast<i64>(i % side), line % side, line / side);
      }
    }
  }
};

void grid_step_plain(benchmark::State& state) {
  auto const world = bench::world(1);
  auto const n = static_cast<u64>(state.range(0));
  Bytes const bytes{(n + 2) * (n + 2) * (n + 2) * sizeof(double)};
  auto const& device = world->devices().front();
  Allocation const fields[] = {device->allocate(bytes, MemoryKind::device),
                               device->allocate(bytes, MemoryKind::device)};
  double* at[2];
  for (u32 i = 0; i < 2; ++i) {
    at[i] = static_cast<double*>(fields[i].data());
    device->fill(at[i], 0, bytes);
  }
  auto const stream = device->make_stream();
  auto const run = [&](u64 count) {
    auto const begin = std::chrono::steady_clock::now();
    for (u64 step = 0; step < count; ++step)
      apps::enqueue(*device, *stream, n * n * n,
                    Plain{at[step % 2], at[1 - step % 2], static_cast<i64>(n)});
    stream->synchronize();
    return bench::microseconds(begin) * 1e-6;
  };
  run(grid_steps() / 10 + 1);
  for (auto _ : state) set_counters(state, n * n * n, run(grid_steps()));
}

void axes(benchmark::internal::Benchmark* one) {
  one->ArgNames({"devices", "n", "weak", "execution"});
  for (i64 const n : {64, 128, 256, 512})
    for (i64 const devices : {1, 2, 4, 8})
      for (i64 const weak : {0, 1})
        for (i64 const execution : {0, 1})
          if (devices > 1 || weak == 0) one->Args({devices, n, weak, execution});
  one->UseManualTime()->Iterations(3);
}

BENCHMARK(grid_step)->Apply(axes);
BENCHMARK(grid_step_plain)
    ->ArgName("n")
    ->RangeMultiplier(2)
    ->Range(64, 512)
    ->UseManualTime()
    ->Iterations(3);
BENCHMARK(grid_of_gpu_and_cpu)->ArgName("n")->Arg(256)->Arg(512)->UseManualTime()->Iterations(3);

}  // namespace
