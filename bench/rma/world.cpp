// What the host pays: creating a World, a window, launching an empty kernel.
#include <benchmark/benchmark.h>

#include "worlds.hpp"

namespace {

using namespace meshpost;

struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};

void world_start(benchmark::State& state) {  // the devices' contexts exist already
  if (static_cast<u32>(state.range(0)) > bench::device_count()) {
    state.SkipWithError("needs more devices");
    return;
  }
  for (auto _ : state) {
    state.PauseTiming();
    bench::world(bench::device_count(), 1);  // another one, so that the next is made
    state.ResumeTiming();
    benchmark::DoNotOptimize(bench::world(static_cast<u32>(state.range(0)), 2));
  }
}

void run_nothing(benchmark::State& state) {
  auto const world = bench::world(static_cast<u32>(state.range(0)));
  if (!world) {
    state.SkipWithError("needs more devices");
    return;
  }
  for (auto _ : state) world->run(Nothing{}, bench::launch());
}

void make_and_free_window(benchmark::State& state) {
  auto const world = bench::world(1);
  for (auto _ : state) world->free(world->window<int>(1024));
}

BENCHMARK(world_start)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(20)->UseRealTime();
BENCHMARK(run_nothing)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(20)->UseRealTime();
BENCHMARK(make_and_free_window)->Iterations(20)->UseRealTime();

}  // namespace
