// How long a plan takes to make: a matrix with 27 entries a row, of a cube of points, in two parts;
// and the halos of a cube of cells. The parts of the matrix belong to this process, or to the two
// of a job (meshpost-run -n 2).
#include <benchmark/benchmark.h>

#include <meshpost/array/plan.hpp>

#include "worlds.hpp"

namespace {

using namespace meshpost;

void plan_of_27_points(benchmark::State& state) {
  u64 const side = static_cast<u64>(state.range(0)), size = side * side * side;
  JobMemory job;
  if (job.processes() > 2) return state.SkipWithError("needs one process or two");
  bool const alone = job.processes() == 1;
  auto const rows = Distribution::block(size, 2);
  std::vector<u64> offsets[2], columns[2];
  for (u32 part = 0; part < 2; ++part) {
    if (!alone && part != job.process()) continue;
    offsets[part].push_back(0);
    columns[part].reserve(27 * rows.size_of(part));
    for (u64 place = 0; place < rows.size_of(part); ++place) {
      u64 const point = rows.index_of(part, place);
      u64 const x = point % side, y = point / side % side, z = point / side / side;
      for (u64 k = z - (z > 0); k < std::min(z + 2, side); ++k)
        for (u64 j = y - (y > 0); j < std::min(y + 2, side); ++j)
          for (u64 i = x - (x > 0); i < std::min(x + 2, side); ++i)
            columns[part].push_back((k * side + j) * side + i);
      offsets[part].push_back(columns[part].size());
    }
  }
  Plan::Pattern const patterns[] = {{offsets[0], columns[0]}, {offsets[1], columns[1]}};
  auto const here = std::span(patterns).subspan(job.process(), alone ? 2 : 1);
  job.meet("a plan of 27 points");
  for (auto _ : state) benchmark::DoNotOptimize(Plan::from_pattern(rows, here, &job));
  state.counters["unknowns"] = static_cast<double>(size);
}

void plan_of_boxes(benchmark::State& state) {
  u64 const side = static_cast<u64>(state.range(0));
  auto const parts = static_cast<u32>(state.range(1));
  BoxHalo const halo{.widths = Sides::all(1)};
  u64 received = 0;
  for (auto _ : state) {
    auto const plan = Plan::from_boxes(Boxes::cut({side, side, side}, parts), halo);
    received = plan.most().received;
  }
  state.counters["halo_cells"] = static_cast<double>(received);
}
BENCHMARK(plan_of_boxes)
    ->ArgNames({"side", "parts"})
    ->Args({512, 2})
    ->Args({512, 64})
    ->Args({512, 4096})
    ->Unit(benchmark::kMillisecond);

}  // namespace

void bench::add_plans() {
  benchmark::RegisterBenchmark("plan_of_27_points", plan_of_27_points)
      ->Arg(50)
      ->Arg(215)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}
