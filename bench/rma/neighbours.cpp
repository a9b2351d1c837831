// A step of ranks that tell both neighbours on their device and wait for both, as a stencil does,
// without any data.
#include <benchmark/benchmark.h>

#include "rma/ping_pong.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;

struct Neighbours {
  Window<u32> counters;
  Window<u64> elapsed;
  u32 rounds;
  bool prepared;
  static constexpr int max_threads = 1024;

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n}, previous{(self.id() + n - 1) % n};
    u64 const begin = self.now();
    if (prepared) {
      auto const up = self.prepare_notify(counters, next, Tag{0}),
                 down = self.prepare_notify(counters, previous, Tag{0});
      auto const both = self.prepare_wait(counters, Tag{0}, 2);
      for (u32 i = 0; i < rounds; ++i) {
        self.put_notify(up);
        self.put_notify(down);
        self.wait(both);
      }
    } else {
      for (u32 i = 0; i < rounds; ++i) {
        self.notify(counters, next, Tag{0});
        self.notify(counters, previous, Tag{0});
        self.wait(counters, Tag{0}, 2);
      }
    }
    if (self.thread() == 0) elapsed.local(self)[0] = self.now() - begin;
  }
};

/// Axes: threads of a rank on a GPU; 1: the operations are prepared.
void neighbours(benchmark::State& state) {
  auto const world = bench::world(1);
  if (!world) {
    state.SkipWithError("needs a device");
    return;
  }
  u32 const threads = static_cast<u32>(state.range(0));
  if (bench::kind() == "cpu" && threads != 256) {
    state.SkipWithError("ranks of CPU devices have one thread");
    return;
  }
  Launch launch = bench::launch();
  if (bench::kind() != "cpu") launch.threads = {threads, 1, 1};
  auto const counters = world->window<u32>(0);
  auto const elapsed = world->window<u64>(1);
  u32 const rounds = 2000;
  for (auto _ : state) {
    world->run(Neighbours{counters, elapsed, rounds, state.range(1) != 0}, launch);
    state.SetIterationTime(static_cast<double>(bench::slowest(elapsed, world->size())) * 1e-9 /
                           rounds);
  }
  world->free(elapsed);
  world->free(counters);
}

BENCHMARK(neighbours)
    ->ArgNames({"threads", "prepared"})
    ->ArgsProduct({{256, 512, 1024}, {0, 1}})
    ->Iterations(5)
    ->UseManualTime();

}  // namespace
