// One-way times (half a round trip) and rates of notify and put_notify.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "rma/ping_pong.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;
using bench::Flags, bench::PingPong, bench::slowest, bench::Stream;

struct Setting {
  std::shared_ptr<World> world;
  u32 active = 0;
};

bool fits(World const& world, u64 bytes) {
  return bytes * world.ranks_per_device() <= world.devices().front()->info().memory / 4;
}

/// Axes: between (0: two halves of one device, 1: two devices), all (0: one pair, 1: all pairs). If
/// no device has `bytes` for all ranks, a pair gets a World without other ranks.
Setting prepare(benchmark::State& state, u64 bytes = 0) {
  bool const between = state.range(0) != 0, all = state.range(1) != 0;
  Setting setting{bench::world(between ? 2 : 1), 1};
  if (setting.world && !all && !fits(*setting.world, bytes)) {
    setting.world.reset();
    setting.world = between ? bench::world(2, 1) : bench::world(1, 2);
  }
  if (!setting.world) {
    state.SkipWithError("needs two devices");
    return setting;
  }
  if (all) setting.active = setting.world->size() / 2;
  if (!fits(*setting.world, bytes)) {
    state.SkipWithError("needs more memory");
    setting.world.reset();
  }
  return setting;
}

void one_way(benchmark::State& state, u64 bytes) {
  auto const [world, active] = prepare(state, 2 * bytes);
  if (!world) return;
  auto const data = world->window<char>(bench::outgoing(bytes) + bytes);
  auto const elapsed = world->window<u64>(1);
  u32 const rounds = static_cast<u32>(
      std::clamp<u64>((u64{64} << 20) / std::max<u64>(bytes * active, 1), 10, 2000));
  for (auto _ : state) {
    world->run(PingPong{data, elapsed, bytes, active, rounds / 10 + 1, rounds}, bench::launch());
    state.SetIterationTime(static_cast<double>(slowest(elapsed, active)) * 1e-9 / rounds / 2);
  }
  state.counters["pairs"] = active;
  state.SetBytesProcessed(static_cast<i64>(bytes * active) * state.iterations());
  world->free(elapsed);
  world->free(data);
}

void flag_one_way(benchmark::State& state) {
  if (bench::kind() == "cpu") {
    state.SkipWithError("needs ranks that run at once");
    return;
  }
  auto const [world, active] = prepare(state);
  if (!world) return;
  u32 const rounds = 2000;
  auto const elapsed = world->window<u64>(1);
  for (auto _ : state) {
    auto const words = world->window<u32>(1);
    world->run(Flags{words, elapsed, rounds}, bench::launch());
    state.SetIterationTime(static_cast<double>(slowest(elapsed, active)) * 1e-9 / rounds / 2);
    world->free(words);
  }
  world->free(elapsed);
}

void notify_one_way(benchmark::State& state) { one_way(state, 0); }
void put_notify_one_way(benchmark::State& state) {
  one_way(state, static_cast<u64>(state.range(2)));
}

void put_stream(benchmark::State& state) {
  u64 const bytes = static_cast<u64>(state.range(2));
  auto const [world, active] = prepare(state, 2 * bytes);
  if (!world) return;
  bool const both_ways = state.range(3) != 0;
  auto const data = world->window<char>(bench::outgoing(bytes) + bytes);
  auto const elapsed = world->window<u64>(1);
  u32 const puts = bench::kind() == "cpu" ? 8 : 64;
  Launch launch = bench::launch();
  if (bench::kind() != "cpu") launch.threads = {static_cast<u32>(state.range(4)), 1, 1};
  for (auto _ : state) {
    world->run(Stream{data, elapsed, bytes, active, puts, both_ways}, launch);
    state.SetIterationTime(static_cast<double>(slowest(elapsed, active)) * 1e-9 / puts);
  }
  state.counters["pairs"] = active;
  state.SetBytesProcessed(static_cast<i64>(bytes * active * (both_ways ? 2 : 1)) *
                          state.iterations());
  world->free(elapsed);
  world->free(data);
}

BENCHMARK(flag_one_way)
    ->ArgNames({"between", "all"})
    ->ArgsProduct({{0, 1}, {0}})
    ->Iterations(3)
    ->UseManualTime();
BENCHMARK(notify_one_way)
    ->ArgNames({"between", "all"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Iterations(3)
    ->UseManualTime();
BENCHMARK(put_notify_one_way)
    ->ArgNames({"between", "all", "bytes"})
    ->ArgsProduct({{0, 1},
                   {0, 1},
                   {8, 16, 64, 512, 1 << 10, 4 << 10, 8 << 10, 64 << 10, 1 << 20, 16 << 20}})
    ->Iterations(3)
    ->UseManualTime();
BENCHMARK(put_stream)
    ->ArgNames({"between", "all", "bytes", "both_ways", "threads"})
    ->ArgsProduct({{1}, {0, 1}, {1 << 20, 4 << 20}, {0}, {256, 512}})
    ->Args({1, 1, 4 << 20, 1, 512})
    ->Iterations(3)
    ->UseManualTime();

/// An iteration is one run, as in the programs of bench/compare/.
benchmark::internal::Benchmark* add(char const* name, void (*measure)(benchmark::State&)) {
  return benchmark::RegisterBenchmark(name, measure)->Iterations(1)->UseManualTime();
}

}  // namespace

void bench::add_pairs(std::vector<std::int64_t> const& sizes) {
  add("flag_one_way", flag_one_way)->ArgNames({"between", "all"})->Args({1, 0});
  add("notify_one_way", notify_one_way)->ArgNames({"between", "all"})->ArgsProduct({{1}, {0, 1}});
  add("put_notify_one_way", put_notify_one_way)
      ->ArgNames({"between", "all", "bytes"})
      ->ArgsProduct({{1}, {0, 1}, sizes});
  add("put_stream", put_stream)
      ->ArgNames({"between", "all", "bytes", "both_ways", "threads"})
      ->ArgsProduct({{1}, {0, 1}, sizes, {0}, {512}});
}
