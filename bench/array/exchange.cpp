// A step of a halo exchange in a kernel, by a plan: two devices need `bytes` of each other. Beside
// it the same bytes both ways by bare put_notify and wait of one rank of each device, which needs
// no barrier, packs nothing and never waits for room.
#include <benchmark/benchmark.h>

#include <numeric>

#include <meshpost/array/exchange.hpp>

#include "worlds.hpp"

namespace {

using namespace meshpost;

constexpr u32 steps = 400;

struct Steps {
  Exchange<double> exchange;
  Window<double> x;
  Window<u64> elapsed;

  MESHPOST_FN void operator()(Rank& self) const {
    RankExchange<double> halo(self, exchange);
    auto const mine = x.local(self);
    u64 begin = 0;
    for (u32 step = 0; step < steps + steps / 10; ++step) {
      if (step == steps / 10) begin = self.now();
      halo.start(mine);
      halo.finish(mine);
    }
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

struct Puts {
  Window<double> x, come;
  Window<u64> elapsed;
  u64 count;

  MESHPOST_FN void operator()(Rank& self) const {
    if (self.local_id() != 0) return;
    RankId const other{(1 - self.device()) * self.local_size()};
    auto const mine = x.local(self).subspan(0, count);
    u64 begin = 0;
    for (u32 step = 0; step < steps + steps / 10; ++step) {
      if (step == steps / 10) begin = self.now();
      self.put_notify(come.at(other, step % 2 * count), mine, Tag{step % 2});
      self.wait(come, Tag{step % 2});
    }
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

std::shared_ptr<World> two_devices(benchmark::State& state) {
  auto world = bench::world(2, static_cast<u32>(state.range(1)));
  if (!world) state.SkipWithError("needs two devices");
  return world;
}

void set_time(benchmark::State& state, Window<u64> const& elapsed) {
  state.SetIterationTime(static_cast<double>(elapsed.read(RankId{0})[0]) * 1e-9 / steps);
}

void exchange_step(benchmark::State& state) {
  auto const world = two_devices(state);
  if (!world) return;
  u64 const count = static_cast<u64>(state.range(0)) / sizeof(double);
  std::vector<std::vector<u64>> needs(2, std::vector<u64>(2 * count));
  for (auto& list : needs) std::iota(list.begin(), list.end(), u64{0});
  auto const plan = Plan::from_indices(Distribution::block(2 * count, 2), needs);
  auto const exchange = make_exchange<double>(*world, plan);
  auto const x = world->window<double>(shared_parts(*world, 2 * count), Tags{0});
  auto const elapsed = world->window<u64>(1);
  for (auto _ : state) {
    world->run(Steps{exchange, x, elapsed}, bench::launch());
    set_time(state, elapsed);
  }
  world->free(elapsed), world->free(x);
  free_exchange(*world, exchange);
}

void exchange_step_by_puts(benchmark::State& state) {
  auto const world = two_devices(state);
  if (!world) return;
  u64 const count = static_cast<u64>(state.range(0)) / sizeof(double);
  auto const x = world->window<double>(shared_parts(*world, count), Tags{0});
  auto const come = world->window<double>(2 * count, Tags{2});
  auto const elapsed = world->window<u64>(1);
  for (auto _ : state) {
    world->run(Puts{x, come, elapsed, count}, bench::launch());
    set_time(state, elapsed);
  }
  world->free(elapsed), world->free(come), world->free(x);
}

// Axes: bytes, ranks of a device (0: the default).
void sizes(benchmark::internal::Benchmark* one) {
  one->ArgNames({"bytes", "ranks"})->ArgsProduct({{64, 8192, 1 << 20}, {1, 0}});
  one->UseManualTime()->Iterations(1);
}
BENCHMARK(exchange_step)->Apply(sizes);
BENCHMARK(exchange_step_by_puts)->Apply(sizes);

}  // namespace
