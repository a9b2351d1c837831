// The step of apps/stencil as three plain OpenMP loops, with the same arithmetic, beside which the
// app has to stand on CPU devices.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <vector>

#include "apps/stencil/stencils.hpp"

namespace {

using namespace stencil;

/// All rows in one piece. Axis: devices that the app would use, of 320 rows each.
void plain_stencil_step(benchmark::State& state) {
  Grid const grid{26, 320 * static_cast<u32>(state.range(0)), 128, 1};
  std::vector<float> memory(fields * grid.field_size());
  Range const all{0, grid.rows, 0, grid.levels};
  u32 step = 0;
  for (auto _ : state) {
    Stencils<float> const stencils{grid, view_of_device(grid, 0, memory.data(), step++, all)};
    auto const mine = [] {
      return Threads{static_cast<u32>(omp_get_thread_num()),
                     static_cast<u32>(omp_get_num_threads()), 0, 1};
    };
#pragma omp parallel
    {
      stencils.do_laplacian(all, mine());
#pragma omp barrier
      stencils.do_fluxes(all, mine());
#pragma omp barrier
      stencils.do_update(all, mine());
    }
  }
  state.counters["points"] = static_cast<double>(grid.rows) * static_cast<double>(grid.row_size());
}

BENCHMARK(plain_stencil_step)->ArgName("devices")->Arg(1)->Arg(2)->Iterations(200)->UseRealTime();

}  // namespace
