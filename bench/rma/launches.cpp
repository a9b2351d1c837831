// Cost of a launch of an empty kernel: waited for, queued, and in a graph.
// bench/compare/launches.cu has the same with CUDA alone.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "worlds.hpp"

namespace {

using namespace meshpost;

constexpr int runs_of_graph = 20, replays = 50, many_launches = 200;

struct Empty {
  MESHPOST_FN void operator()(Rank&) const {}
};

// A World of so many devices. If there are fewer: null, and the benchmark is skipped.
std::shared_ptr<World> world_of(benchmark::State& state) {
  auto world = bench::world(static_cast<u32>(state.range(0)));
  if (world) state.counters["ranks"] = world->size();
  else state.SkipWithError("needs more devices");
  return world;
}

template <class Work>
double seconds_of(Work const& work) {
  auto const begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void run_nothing(benchmark::State& state) {
  auto const world = world_of(state);
  if (!world) return;
  for (auto _ : state) world->run(Empty{}, bench::launch());
}

// Time of each of many that are launched before the first is waited for.
void queue_nothing(benchmark::State& state) {
  auto const world = world_of(state);
  if (!world) return;
  for (auto _ : state) {
    std::vector<Run> runs;
    auto const all = [&] {
      for (int i = 0; i < many_launches; ++i)
        runs.push_back(world->launch(Empty{}, bench::launch()));
      runs.back().wait();
    };
    state.SetIterationTime(seconds_of(all) / many_launches);
  }
}

// Time of each run of a graph that is launched and waited for again and again.
void graph_of_nothing(benchmark::State& state) {
  auto const world = world_of(state);
  if (!world) return;
  Graph graph;
  for (int i = 0; i < runs_of_graph; ++i) graph.add(Empty{}, bench::launch());
  auto const replay = [&](int times) {
    for (int i = 0; i < times; ++i) world->run(graph);
  };
  replay(5);
  for (auto _ : state)
    state.SetIterationTime(seconds_of([&] { replay(replays); }) / (replays * runs_of_graph));
}

void add(std::vector<std::int64_t> const& devices) {
  auto const on = [&](char const* name, void (*run)(benchmark::State&), int iterations) {
    auto* const one = benchmark::RegisterBenchmark(name, run)->ArgName("devices");
    for (auto const count : devices) one->Arg(count);
    return one->Iterations(iterations);
  };
  on("run_nothing", run_nothing, 500)->UseRealTime();
  on("queue_nothing", queue_nothing, 5)->UseManualTime();
  on("graph_of_nothing", graph_of_nothing, 5)->UseManualTime();
}

[[maybe_unused]] bool const registered = (add({1, 2, 8}), true);

}  // namespace

void bench::add_launches() { add({bench::device_count()}); }
