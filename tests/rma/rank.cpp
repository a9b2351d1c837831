// A rank's number, its threads, its scratch memory.
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

struct Whoami {
  static constexpr u32 fields = 8;
  Communicator split;
  Window<u32> out;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.thread() != 0) return;
    auto const mine = out.local(self);
    mine[0] = self.id();
    mine[1] = self.size();
    mine[2] = self.local_id();
    mine[3] = self.local_size();
    mine[4] = self.device();
    mine[5] = self.device_count();
    mine[6] = self.id(split) * 1000 + self.size(split);
    mine[7] = self.world_rank(split, RankId{self.size(split) - 1});
  }
};

struct ThreadNumbers {
  Window<u32> out;  // [thread][number, x, y, z]
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = out.local(self);
    Dim3 const i = self.thread_index();
    u32 const t = self.thread();
    mine[t * 4 + 0] = t + 1;
    mine[t * 4 + 1] = i.x, mine[t * 4 + 2] = i.y, mine[t * 4 + 3] = i.z;
    if (t == 0) {
      mine[4 * self.threads()] = self.threads();
      Dim3 const extent = self.thread_extent();
      mine[4 * self.threads() + 1] = extent.x * 10000 + extent.y * 100 + extent.z;
    }
  }
};

struct EachOnce {
  Window<u32> out;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = out.local(self);
    self.each(mine.size(), [&](u64 i) { mine[i] += static_cast<u32>(i + 1); });
    self.each(0, [&](u64) { mine[0] = 999; });
  }
};

struct Reverse {  // through scratch memory: after sync() each thread sees the stores of the others
  Window<u32> out;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = out.local(self);
    u64 const n = mine.size();
    auto const kept = self.scratch<u32>(n);
    for (u32 round = 0; round < 11; ++round) {
      self.each(n, [&](u64 i) { kept[n - 1 - i] = mine[i]; });
      self.sync();
      self.each(n, [&](u64 i) { mine[i] = kept[i]; });
      self.sync();
    }
  }
};

struct ScratchSize {
  Window<u32> out;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.thread() == 0) out.local(self)[0] = static_cast<u32>(self.scratch<double>().size());
  }
};

struct TooMuchScratch {
  MESHPOST_FN void operator()(Rank& self) const { self.scratch<double>(101); }
};

class RankItself : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, RankItself, test::all_shapes(), test::shape_name);

TEST_P(RankItself, knows_its_place) {
  auto const out = world.window<u32>(Whoami::fields, Tags{0});
  auto const split = world.split(world.communicator(), [](RankId r) { return i64{r % 2}; });
  world.run(Whoami{split, out}, launch);
  u32 const n = world.size(), each = world.ranks_per_device();
  EXPECT_EQ(each, GetParam().ranks);
  for (u32 r = 0; r < n; ++r) {
    u32 const in_group = (n + 1 - r % 2) / 2, last = r % 2 + 2 * (in_group - 1);
    EXPECT_EQ(out.read(RankId{r}),
              (std::vector<u32>{r, n, r % each, each, r / each, world.device_count(),
                                r / 2 * 1000 + in_group, last}));
  }
}

TEST_P(RankItself, numbers_its_threads_with_x_fastest) {
  Dim3 const t = launch.threads;
  u32 const most = 1024;
  auto const out = world.window<u32>(4 * most + 2, Tags{0});
  world.run(ThreadNumbers{out}, launch);
  auto const mine = out.read(RankId{world.size() - 1});
  Dim3 const extent = t.x != 0 ? t : Dim3{test::on_gpus() ? 256u : 1u, 1, 1};
  u32 const threads = extent.volume();
  EXPECT_EQ(mine[4 * threads], threads);
  EXPECT_EQ(mine[4 * threads + 1], extent.x * 10000 + extent.y * 100 + extent.z);
  for (u32 i = 0; i < threads; ++i) {
    EXPECT_EQ(mine[4 * i], i + 1);
    EXPECT_EQ(mine[4 * i + 1] + extent.x * (mine[4 * i + 2] + extent.y * mine[4 * i + 3]), i);
  }
}

TEST_P(RankItself, shares_work_so_that_each_item_is_done_once) {
  for (u64 const size : {u64{1}, u64{31}, u64{1000}}) {
    auto const out = world.window<u32>(size, Tags{0});
    world.run(EachOnce{out}, launch);
    for (u32 r = 0; r < world.size(); ++r) {
      auto const mine = out.read(RankId{r});
      for (u64 i = 0; i < size; ++i) EXPECT_EQ(mine[i], i + 1);
    }
  }
}

TEST_P(RankItself, has_scratch_memory_for_its_threads) {
  u32 const size = 500;
  auto const out = world.window<u32>(size, Tags{0});
  std::vector<u32> numbers(size);
  for (u32 i = 0; i < size; ++i) numbers[i] = i;
  for (u32 r = 0; r < world.size(); ++r) out.write(RankId{r}, 0, numbers);
  launch.scratch = Bytes{size * sizeof(u32)};
  world.run(Reverse{out}, launch);
  std::vector<u32> const reversed(numbers.rbegin(), numbers.rend());
  for (u32 r = 0; r < world.size(); ++r) EXPECT_EQ(out.read(RankId{r}), reversed);
}

TEST_P(RankItself, knows_how_much_scratch_there_is) {
  auto const out = world.window<u32>(1, Tags{0});
  launch.scratch = Bytes{804};
  world.run(ScratchSize{out}, launch);
  EXPECT_EQ(out.read(RankId{0})[0], 100u);
  EXPECT_TRUE(test::says(
      test::error_of([&] { world.run(TooMuchScratch{}, launch); }), Kind::kernel_failed,
      {"scratch", "808 bytes", "804 were given", "set Launch::scratch", "TooMuchScratch"}));
}

}  // namespace
}  // namespace meshpost
