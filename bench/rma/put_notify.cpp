// One-way times (half a round trip) and rates of notify and put_notify.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "worlds.hpp"

namespace {

using namespace meshpost;

/// Rank i of the first half of the ranks plays with rank i of the second half; the halves are two
/// devices, or those of one. `active` pairs play. Each round goes there and back.
struct PingPong {
  Window<char> data;
  Window<u64> elapsed;  // ns of all timed rounds, at the pair's first rank
  u64 bytes;
  u32 active, warm_up, rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    u32 const pair = self.id() % half;
    if (pair >= active || self.id() >= 2 * half) return;
    bool const first = self.id() < half;
    RankId const partner{first ? pair + half : pair};
    auto const source = data.local(self).subspan(bytes, bytes);
    u64 begin = 0;
    for (u32 i = 0; i < warm_up + rounds; ++i) {
      if (i == warm_up) begin = self.now();
      if (!first) self.wait(data, Tag{0});
      if (bytes == 0) self.notify(data, partner, Tag{0});
      else self.put_notify(data.at(partner), source, Tag{0});
      if (first) self.wait(data, Tag{0});
    }
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

/// The floor under PingPong: two threads that raise and poll each other's word, nothing else, in
/// the same memory.
struct Flags {
  Window<u32> words;
  Window<u64> elapsed;
  u32 rounds;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    bool const first = self.id() < half;
    if (self.id() % half != 0 || self.id() >= 2 * half || self.thread() != 0) return;
    u32* const mine = words.local(self).data();
    auto const& state = self.state();
    RankId const partner{first ? half : 0};
    u32* const theirs = reinterpret_cast<u32*>(
        state.heap + state.device_of(partner) * state.stride + words.info().offset +
        partner % self.local_size() * words.info().pitch);
    u64 const begin = self.now();
    for (u32 i = 1; i <= rounds; ++i) {
      if (first) memory::add(theirs, 1, Order::none);
      for (u32 polls = 0; memory::load_acquire(mine) < i && polls < 1u << 24; ++polls) {
      }
      if (!first) memory::add(theirs, 1, Order::none);
    }
    elapsed.local(self)[0] = self.now() - begin;
  }
};

/// The first half sends `puts` puts of `bytes` each, then waits until its partner has consumed them
/// all.
struct Stream {
  Window<char> data;
  Window<u64> elapsed;
  u64 bytes;
  u32 active, puts;
  bool both_ways;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const half = self.size() / 2;
    u32 const pair = self.id() % half;
    self.barrier();
    if (pair >= active || self.id() >= 2 * half) return;
    bool const first = self.id() < half;
    RankId const partner{first ? pair + half : pair};
    auto const source = data.local(self).subspan(bytes, bytes);
    u64 const begin = self.now();
    if (first || both_ways)
      for (u32 i = 0; i < puts; ++i) self.put_notify(data.at(partner), source, Tag{0});
    if (!first || both_ways) {
      self.wait(data, Tag{0}, puts);
      self.notify(data, partner, Tag{1});
    }
    if (first || both_ways) self.wait(data, Tag{1});
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

struct Setting {
  std::shared_ptr<World> world;
  u32 active = 0;
};

/// Axes: between (0: two halves of one device, 1: two devices), all (0: one pair, 1: all pairs).
Setting prepare(benchmark::State& state) {
  bool const between = state.range(0) != 0, all = state.range(1) != 0;
  Setting setting{bench::world(between ? 2 : 1), 1};
  if (!setting.world) {
    state.SkipWithError("needs two devices");
    return setting;
  }
  if (all) setting.active = setting.world->size() / 2;
  return setting;
}

u64 slowest(Window<u64> const& elapsed, u32 active) {
  u64 longest = 0;
  for (u32 r = 0; r < active; ++r) longest = std::max(longest, elapsed.read(RankId{r})[0]);
  return longest;
}

void one_way(benchmark::State& state, u64 bytes) {
  auto const [world, active] = prepare(state);
  if (!world) return;
  if (2 * bytes * world->ranks_per_device() > world->devices().front()->info().memory / 4) {
    state.SkipWithError("needs more memory");
    return;
  }
  auto const data = world->window<char>(std::max<u64>(2 * bytes, 16));
  auto const elapsed = world->window<u64>(1);
  u32 const rounds = static_cast<u32>(
      std::clamp<u64>((u64{64} << 20) / std::max<u64>(bytes * active, 1), 10, 2000));
  for (auto _ : state) {
    world->run(PingPong{data, elapsed, bytes, active, rounds / 10 + 1, rounds}, bench::launch());
    state.SetIterationTime(static_cast<double>(slowest(elapsed, active)) * 1e-9 / rounds / 2);
  }
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
  auto const [world, active] = prepare(state);
  if (!world) return;
  u64 const bytes = static_cast<u64>(state.range(2));
  bool const both_ways = state.range(3) != 0;
  auto const data = world->window<char>(2 * bytes);
  auto const elapsed = world->window<u64>(1);
  u32 const puts = bench::kind() == "cpu" ? 8 : 64;
  Launch launch = bench::launch();
  if (bench::kind() != "cpu") launch.threads = {static_cast<u32>(state.range(4)), 1, 1};
  for (auto _ : state) {
    world->run(Stream{data, elapsed, bytes, active, puts, both_ways}, launch);
    state.SetIterationTime(static_cast<double>(slowest(elapsed, active)) * 1e-9 / puts);
  }
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

}  // namespace
