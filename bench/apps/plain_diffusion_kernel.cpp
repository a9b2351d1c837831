// The step of apps/diffusion as a plain kernel for each step, with the same arithmetic, beside
// which the app has to stand on GPUs.
#include <benchmark/benchmark.h>

#include <chrono>

#include "apps/diffusion/kernel.hpp"
#include "common/enqueue.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;
using diffusion::Shape;

/// All rows of a device, four points a thread.
struct Step {
  diffusion::Diffusion<float> diffusion;
  float *in, *out;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    auto const& shape = diffusion.shape;
    u32 const size = static_cast<u32>(shape.row_size());
    u32 const fours = size / 4 * shape.rows;
    for (u32 i = static_cast<u32>(first); i < fours; i += static_cast<u32>(stride)) {
      u32 const row = i / (size / 4), column = 4 * i % shape.columns;
      diffusion.next_four(in + 4 * u64{i}, row, column, size).store(out + 4 * u64{i});
    }
  }
};

/// Axis: columns; on the first device that MESHPOST_DEVICES names.
void plain_diffusion_kernel(benchmark::State& state) {
  auto const devices = open_devices(Config::from_environment().devices);
  auto& device = *devices.front();
  if (device.kind() == "cpu") {  // plain_diffusion.cpp has the loop for it
    state.SkipWithError("needs a GPU");
    return;
  }
  u32 const columns = static_cast<u32>(state.range(0));
  Shape const shape{26, 320, columns, 1, 1};
  Bytes const bytes{shape.row_size() * shape.rows * sizeof(float)};
  auto const one = device.allocate(bytes, MemoryKind::device);
  auto const other = device.allocate(bytes, MemoryKind::device);
  auto const stream = device.make_stream();
  stream->fill(one.data(), 0, bytes);
  stream->fill(other.data(), 0, bytes);
  stream->synchronize();
  Step step{{{}, shape, 0, 1, 1.0f}, one.as<float>(), other.as<float>()};
  constexpr u32 steps = 200;
  for (auto _ : state) {
    auto const begin = std::chrono::steady_clock::now();
    for (u32 i = 0; i < steps; ++i) {
      apps::enqueue(device, *stream, bytes / sizeof(float) / 4, step);
      std::swap(step.in, step.out);
    }
    stream->synchronize();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / steps);
  }
  state.SetBytesProcessed(static_cast<i64>(2 * bytes) * state.iterations());
}

BENCHMARK(plain_diffusion_kernel)
    ->ArgName("columns")
    ->Arg(128)
    ->Arg(1024)
    ->Iterations(5)
    ->UseManualTime();

}  // namespace
