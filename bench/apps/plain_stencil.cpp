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
#pragma omp parallel
    {
      u32 const thread = static_cast<u32>(omp_get_thread_num());
      u32 const threads = static_cast<u32>(omp_get_num_threads());
      Range const mine{grid.rows * thread / threads, grid.rows * (thread + 1) / threads, 0,
                       grid.levels};
      Threads const alone{0, 1, 0, 1};
      stencils.do_laplacian(mine, alone);
#pragma omp barrier
      stencils.do_fluxes(mine, alone);
#pragma omp barrier
      stencils.do_update(mine, alone);
    }
  }
  state.counters["points"] = static_cast<double>(grid.rows) * static_cast<double>(grid.row_size());
}

BENCHMARK(plain_stencil_step)->ArgName("devices")->Arg(1)->Arg(2)->Iterations(200)->UseRealTime();

}  // namespace
