// The step of apps/diffusion as a plain OpenMP loop, with the same arithmetic, beside which the app
// has to stand on CPU devices.
#include <benchmark/benchmark.h>

#include <utility>
#include <vector>

#include "apps/diffusion/kernel.hpp"

namespace {

using diffusion::halo;

void step(std::vector<float> const& in, std::vector<float>& out, long rows, long levels,
          long columns) {
  long const down = levels * columns;
  auto const lap = [=](float const* p) {
    return 4 * p[0] - ((p[-1] + p[1]) + (p[down] + p[-down]));
  };
  auto const flux = [](float here, float there, float difference) {
    float const f = there - here;
    return f * difference > 0 ? 0 : f;
  };
#pragma omp parallel for schedule(static)
  for (long row = halo; row < rows - halo; ++row)
    for (long level = 0; level < levels; ++level) {
      float const* const from = in.data() + row * down + level * columns;
      float* const to = out.data() + row * down + level * columns;
      for (long i = halo; i < columns - halo; ++i) {
        float const* const u = from + i;
        float const middle = lap(u);
        float const east = flux(middle, lap(u + 1), u[1] - u[0]);
        float const west = flux(lap(u - 1), middle, u[0] - u[-1]);
        float const north = flux(middle, lap(u + down), u[down] - u[0]);
        float const south = flux(lap(u - down), middle, u[0] - u[-down]);
        to[i] = u[0] - 0.025f * ((east - west) + (north - south));
      }
    }
}

/// Axes: devices that the app would use, columns.
void plain_diffusion_step(benchmark::State& state) {
  long const levels = 26, rows = 320 * state.range(0), columns = state.range(1);
  std::vector<float> one(static_cast<std::size_t>(levels * rows * columns)), other = one;
  for (auto _ : state) {
    step(one, other, rows, levels, columns);
    std::swap(one, other);
  }
  state.counters["points"] = static_cast<double>(one.size());
}

BENCHMARK(plain_diffusion_step)
    ->ArgNames({"devices", "columns"})
    ->ArgsProduct({{1, 2}, {128, 1024}})
    ->Iterations(60)
    ->UseRealTime();

}  // namespace
