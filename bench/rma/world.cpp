// Costs of the host: creating a World, a window, timelines, a notification.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "worlds.hpp"

namespace {

using namespace meshpost;

struct Nothing {
  MESHPOST_FN void operator()(Rank&) const {}
};

struct Echo {
  Window<int> box;
  HostId host;
  u32 rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return;
    for (u32 i = 0; i < rounds; ++i) {
      self.wait(box, Tag{0});
      self.notify(box, host, Tag{0});
    }
  }
};

void world_start(benchmark::State& state) {  // the devices' contexts exist already
  if (static_cast<u32>(state.range(0)) > bench::device_count()) {
    state.SkipWithError("needs more devices");
    return;
  }
  for (auto _ : state) {
    state.PauseTiming();
    bench::world(bench::device_count(), 1);  // another one, so that the next call makes a new one
    state.ResumeTiming();
    benchmark::DoNotOptimize(bench::world(static_cast<u32>(state.range(0)), 2));
  }
}

// An empty run with a timeline. A background thread writes it (0), or each run itself (1). A CPU
// device's worker may fall asleep between runs, so compare many iterations.
void run_nothing_with_timeline(benchmark::State& state) {
  auto const devices = bench::first_devices(static_cast<u32>(state.range(0)));
  if (devices.empty()) {
    state.SkipWithError("needs more devices");
    return;
  }
  auto const folder = std::filesystem::temp_directory_path();
  auto const file = folder / ("meshpost_bench-" + std::to_string(getpid()) + ".json");
  {
    auto launch = bench::launch();
    WorldOptions options;
    options.devices = devices;
    if (state.range(1) == 0) options.trace = file;
    else launch.trace = file;
    World world(options);
    for (int i = 0; i < 3; ++i) world.run(Nothing{}, launch);  // makes memory, aligns clocks
    for (auto _ : state) world.run(Nothing{}, launch);
  }
  std::filesystem::remove(file);
}

// The host notifies a rank of a kernel that runs, which notifies the host.
void host_and_back(benchmark::State& state) {
  auto const world = bench::world(1, 1);
  auto const box = world->window<int>(1, Tags{1});
  auto launch = bench::launch();
  launch.with_host = true;
  constexpr u32 rounds = 500;
  for (auto _ : state) {
    auto run = world->launch(Echo{box, world->host(), rounds}, launch);
    std::chrono::steady_clock::time_point begin;
    for (u32 i = 0; i < rounds; ++i) {
      if (i == rounds / 5) begin = std::chrono::steady_clock::now();
      box.notify(RankId{0}, Tag{0});
      box.wait(Tag{0});
    }
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
        (rounds - rounds / 5));
    run.wait();
  }
  world->free(box);
}

void make_and_free_window(benchmark::State& state) {
  auto const world = bench::world(1);
  for (auto _ : state) world->free(world->window<int>(1024));
}

BENCHMARK(world_start)->ArgName("devices")->Arg(1)->Arg(2)->Arg(8)->Iterations(20)->UseRealTime();
BENCHMARK(run_nothing_with_timeline)
    ->ArgNames({"devices", "at_once"})
    ->ArgsProduct({{1, 2, 8}, {0, 1}})
    ->Iterations(500)
    ->UseRealTime();
BENCHMARK(host_and_back)->Iterations(5)->UseManualTime();
BENCHMARK(make_and_free_window)->Iterations(20)->UseRealTime();

}  // namespace
