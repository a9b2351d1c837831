// Launches on logical devices: their lock, the ranks that fit, scratch and bounds of kernels.
#include <algorithm>
#include <thread>

#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

std::string whole() { return test::on_gpus() ? "cuda:0" : "cpu:1"; }
std::string split_in(u32 parts) { return whole() + "*" + std::to_string(parts); }

struct Meet {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// The first and the last moment of a run, by the clock of its device.
struct Stays {
  Window<u64> times;
  MESHPOST_FN void operator()(Rank& self) const {
    u64 const begin = self.now();
    self.barrier();
    while (self.now() - begin < 2'000'000) {
    }
    self.barrier();
    if (self.thread() != 0) return;
    times.local(self)[0] = begin;
    times.local(self)[1] = self.now();
  }
};

// A GPU, whole or in parts, runs kernels of these Worlds one after the other.
TEST(LogicalDevice, takes_its_place_among_the_runs_of_its_gpu) {
  if (!test::on_gpus()) GTEST_SKIP() << "Worlds on CPU devices run side by side";
  constexpr int runs = 10;
  std::vector<std::pair<u64, u64>> spans[3];
  auto const run = [&](std::string const& devices, auto& into) {
    World world(test::options(1, devices));
    auto const times = world.window<u64>(2, Tags{0});
    for (int i = 0; i < runs; ++i) {
      world.run(Stays{times});
      u64 begin = ~u64{0}, end = 0;
      for (u32 r = 0; r < world.size(); ++r) {
        auto const both = times.read(RankId{r});
        begin = std::min(begin, both[0]);
        end = std::max(end, both[1]);
      }
      into.emplace_back(begin, end);
    }
  };
  std::thread two([&] { run(split_in(2), spans[0]); }), three([&] { run(split_in(3), spans[1]); });
  run(whole(), spans[2]);
  two.join();
  three.join();
  std::vector<std::pair<u64, u64>> all;
  for (auto const& some : spans) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), 3u * runs);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].first, all[i - 1].second);
}

TEST(LogicalDevice, of_a_gpu_has_its_share_of_the_ranks_unless_the_program_says_otherwise) {
  World const one(test::options(0, whole()));
  World const four(test::options(0, split_in(4)));
  u32 const share = one.ranks_per_device() / 4;
  EXPECT_EQ(four.ranks_per_device(), std::max(test::on_gpus() ? 1u : 16u, share));
}

TEST(LogicalDevice, fits_a_gpu_only_together_with_the_others) {
  if (!test::on_gpus()) GTEST_SKIP() << "CPU devices take turns";
  // A multiprocessor takes at most 2048 threads. So each device would fit alone.
  u32 const processors = open_devices("cuda:0").front()->info().processors;
  World world(test::options(processors, split_in(4)));
  EXPECT_TRUE(says(error_of([&] { world.run(Meet{}, {.threads = {512, 1, 1}}); }),
                   Kind::out_of_memory,
                   {"on cuda:0", std::to_string(processors) + " on each of 4 logical devices",
                    "can be resident at once", "logical devices, threads"}));
}

// Scratch memory, in sizes of any alignment. The library keeps data of its own behind it.
struct Scratch {
  test::Findings findings;
  u32 bytes;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const scratch = self.scratch<u8>();
    findings.add(self, scratch.size() != bytes);
    for (u32 round = 0; round < 2; ++round) {
      self.each(scratch.size(), [&](u64 i) { scratch[i] = static_cast<u8>(i * 7 + round); });
      self.barrier();
      self.each(scratch.size(),
                [&](u64 i) { findings.add(self, scratch[i] != static_cast<u8>(i * 7 + round)); });
      self.barrier();
    }
  }
};

TEST(LogicalDevice, has_all_the_scratch_that_was_asked_for) {
  World world(test::options(2, split_in(3)));
  auto const findings = test::make_findings(world);
  for (u32 const bytes : {0u, 1u, 100u, 4096u, 48u * 1024, 100'001u})
    world.run(Scratch{findings, bytes}, {.scratch = Bytes{bytes}});
  EXPECT_EQ(test::total(world, findings), 0u);
}

struct Bounded {
  static constexpr int max_threads = 128;
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.thread() == 0) window.local(self)[0] = self.device() + self.threads();
  }
};

TEST(LogicalDevice, runs_kernels_that_bound_their_threads) {
  World world(test::options(2, split_in(3)));
  auto const window = world.window<u32>(1, Tags{0});
  world.run(Bounded{window}, {.threads = {128, 1, 1}});
  for (u32 rank = 0; rank < world.size(); ++rank)
    EXPECT_EQ(window.read(RankId{rank})[0], rank / 2 + 128);
}

}  // namespace
}  // namespace meshpost
