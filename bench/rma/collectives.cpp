// A ring of all ranks, barrier and all_reduce, by number of devices and ranks.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "worlds.hpp"

namespace {

using namespace meshpost;

struct Barriers {
  Window<u64> elapsed;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    self.barrier();
    u64 const begin = self.now();
    for (u32 i = 0; i < rounds; ++i) self.barrier();
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

struct AllReduces {
  Communicator all;
  Window<double> data;
  Window<u64> elapsed;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = data.local(self);
    self.barrier();
    u64 const begin = self.now();
    for (u32 i = 0; i < rounds; ++i) self.all_reduce(all, mine, Max{});
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

/// All ranks notify the next one and wait for the previous one.
struct Rings {
  Window<double> data;
  Window<u64> elapsed;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    self.barrier();
    u64 const begin = self.now();
    for (u32 i = 0; i < rounds; ++i) {
      self.notify(data, next, Tag{0});
      self.wait(data, Tag{0});
    }
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

/// Axes: devices, ranks of a device (0: the default).
template <class Make>
void measure(benchmark::State& state, u64 elements, Make&& make) {
  auto const world =
      bench::world(static_cast<u32>(state.range(0)), static_cast<u32>(state.range(1)));
  if (!world) {
    state.SkipWithError("needs more devices");
    return;
  }
  auto const data = world->window<double>(elements);
  auto const elapsed = world->window<u64>(1);
  u32 const rounds = bench::kind() == "cpu" ? 200 : 1000;
  for (auto _ : state) {
    auto const kernel = make(*world, data, elapsed, rounds);
    world->run(kernel, bench::launch());
    state.SetIterationTime(static_cast<double>(elapsed.read(RankId{0})[0]) * 1e-9 / kernel.rounds);
  }
  state.counters["ranks"] = world->size();
  world->free(elapsed);
  world->free(data);
}

void barrier(benchmark::State& state) {
  measure(state, 1, [](World&, Window<double> const&, Window<u64> const& elapsed, u32 rounds) {
    return Barriers{elapsed, rounds};
  });
}

void all_reduce(benchmark::State& state) {
  if (state.range(2) > (state.range(1) == 1 ? 16 << 20 : 1 << 20)) {
    state.SkipWithError("too long: all ranks' vectors are read by each device");
    return;
  }
  measure(state, static_cast<u64>(state.range(2)) / sizeof(double),
          [](World& world, Window<double> const& data, Window<u64> const& elapsed, u32 rounds) {
            u64 const bytes = data.info().pitch * world.size();  // each rank reads all vectors
            u64 const most = std::max<u64>((u64{64} << 20) / bytes, 10);
            return AllReduces{world.communicator(), data, elapsed,
                              static_cast<u32>(std::min<u64>(rounds, most))};
          });
}

void ring_round(benchmark::State& state) {
  measure(state, 1, [](World&, Window<double> const& data, Window<u64> const& elapsed, u32) {
    return Rings{data, elapsed, 1000};
  });
}

BENCHMARK(ring_round)
    ->ArgNames({"devices", "ranks"})
    ->ArgsProduct({{1, 2, 4, 8}, {0, 104}})
    ->Iterations(3)
    ->UseManualTime();
BENCHMARK(barrier)
    ->ArgNames({"devices", "ranks"})
    ->ArgsProduct({{1, 2, 4, 8}, {1, 16, 0}})
    ->Iterations(3)
    ->UseManualTime();
BENCHMARK(all_reduce)
    ->ArgNames({"devices", "ranks", "bytes"})
    ->ArgsProduct({{1, 2, 4, 8}, {1, 16, 0}, {8, 1024}})
    ->Iterations(3)
    ->UseManualTime();

}  // namespace

void bench::add_groups(std::vector<std::int64_t> const& sizes) {
  std::int64_t const devices = device_count();
  benchmark::RegisterBenchmark("barrier", barrier)
      ->ArgNames({"devices", "ranks"})
      ->ArgsProduct({{devices}, {1, 0}})
      ->Iterations(1)
      ->UseManualTime();
  benchmark::RegisterBenchmark("all_reduce", all_reduce)
      ->ArgNames({"devices", "ranks", "bytes"})
      ->ArgsProduct({{devices}, {1, 0}, sizes})
      ->Iterations(1)
      ->UseManualTime();
}
