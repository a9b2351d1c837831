// One-way times (half a round trip) of a face of a grid of n^3 doubles, from one rank's grid into
// another's buffer. Three ways: a strided put_notify; packed by the rank and then put; for
// comparison, as many contiguous bytes.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "rma/ping_pong.hpp"
#include "worlds.hpp"

namespace {

using namespace meshpost;

enum class Way : i64 { strided, packed, contiguous };

struct Faces {
  Window<double> grid, inbox, packed;
  Window<u64> elapsed;  // ns of all timed rounds, at the pair's first rank
  StridedLayout face;   // of n * n elements
  u64 n;
  Way way;
  u32 active, warm_up, rounds;

  MESHPOST_FN void send(Rank& self, RankId partner) const {
    auto const mine = grid.local(self);
    u64 const count = face.volume();
    if (way == Way::strided) return self.put_notify(inbox.at(partner), mine.strided(face), Tag{0});
    if (way == Way::contiguous)
      return self.put_notify(inbox.at(partner), mine.subspan(0, count), Tag{0});
    auto const out = packed.local(self);
    self.flush(packed);
    u64 const inner = face.extents.x == 1 ? face.strides.y : face.strides.x;
    u64 const outer = face.extents.z == 1 ? face.strides.y : face.strides.z;
    auto const pack = [&](u64 i, u64 j) {
      out[j * n + i] = mine[face.offset + i * inner + j * outer];
    };
    if (self.threads() == 1) {
      for (u64 j = 0; j < n; ++j)
        for (u64 i = 0; i < n; ++i) pack(i, j);
    } else {
      self.each(count, [&](u64 at) { pack(at % n, at / n); });
    }
    self.put_notify(inbox.at(partner), out.subspan(0, count), Tag{0});
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u64 const ns = bench::play(self, inbox, active, warm_up, rounds,
                               [&](RankId partner) { send(self, partner); });
    if (self.thread() == 0) elapsed.local(self)[0] = ns;
  }
};

StridedLayout face_of(i64 direction, u64 n) {
  auto const grid = StridedLayout::dense({n, n, n});
  if (direction == 0) return grid.subarray({1, 0, 0}, {1, n, n});
  if (direction == 1) return grid.subarray({0, 1, 0}, {n, 1, n});
  return grid.subarray({0, 0, 1}, {n, n, 1});
}

/// Axes: face (0: x, 1: y, 2: z), way (0: strided, 1: packed, 2: contiguous), n, all (0: one pair
/// of ranks, 1: all of two devices).
void face_one_way(benchmark::State& state) {
  auto const world = bench::world(2);
  if (!world) return state.SkipWithError("needs two devices");
  u64 const n = static_cast<u64>(state.range(2));
  if (n * n * n * sizeof(double) * world->ranks_per_device() >
      world->devices().front()->info().memory / 8)
    return state.SkipWithError("needs more memory");
  u32 const active = state.range(3) != 0 ? world->size() / 2 : 1;
  auto const grid = world->window<double>(n * n * n, Tags{0});
  auto const inbox = world->window<double>(n * n), packed = world->window<double>(n * n, Tags{0});
  auto const elapsed = world->window<u64>(1, Tags{0});
  u32 const rounds =
      static_cast<u32>(std::clamp<u64>((u64{16} << 20) / (n * n * active), 10, 2000));
  for (auto _ : state) {
    world->run(Faces{grid, inbox, packed, elapsed, face_of(state.range(0), n), n,
                     static_cast<Way>(state.range(1)), active, rounds / 10 + 1, rounds},
               bench::launch());
    state.SetIterationTime(static_cast<double>(bench::slowest(elapsed, active)) * 1e-9 / rounds /
                           2);
  }
  state.SetBytesProcessed(static_cast<i64>(n * n * sizeof(double) * active) * state.iterations());
  for (auto const& window : {grid, inbox, packed}) world->free(window);
  world->free(elapsed);
}

BENCHMARK(face_one_way)
    ->ArgNames({"face", "way", "n", "all"})
    ->ArgsProduct({{0, 1, 2}, {0, 1, 2}, {16, 64, 128}, {0, 1}})
    ->Iterations(3)
    ->UseManualTime();

}  // namespace
