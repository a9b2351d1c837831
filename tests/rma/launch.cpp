// Runs from the host's side: order with streams, one after the other, several Worlds, several
// threads.
#include <atomic>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

struct Double {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    self.each(mine.size(), [&](u64 i) { mine[i] *= 2; });
  }
};

struct Slowly {  // adds one to every element, after a while
  Window<u32> window;
  u64 nanoseconds;
  MESHPOST_FN void operator()(Rank& self) const {
    u64 const begin = self.now();
    while (self.now() - begin < nanoseconds) {
    }
    self.sync();
    auto const mine = window.local(self);
    self.each(mine.size(), [&](u64 i) { mine[i] += 1; });
    self.barrier();
  }
};

struct Ring {
  Window<u32> window;
  u32 rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = window.local(self);
    for (u32 i = 0; i < rounds; ++i) {
      if (self.thread() == 0) mine[1] = mine[0] + 1;
      self.barrier();
      self.put_notify(window.at(RankId{(self.id() + 1) % self.size()}), mine.subspan(1, 1), Tag{0});
      self.wait(window, Tag{0});
      self.barrier();
    }
  }
};

struct Fails {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.fail("on purpose");
  }
};

struct Waits {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(window, Tag{0}); }
};

u32* memory_of(World& world, std::vector<Allocation>& kept) {
  kept.push_back(world.devices()[0]->allocate(Bytes{64}, MemoryKind::device));
  return kept.back().as<u32>();
}

TEST(Launch, starts_after_its_streams_and_lets_them_go_on_after_it) {
  World world(test::options(1, test::devices(test::Spread::one_device)));
  std::vector<Allocation> kept;
  auto* const memory = memory_of(world, kept);
  auto const window = world.register_memory(std::vector<std::span<u32>>{{memory, 16}});
  auto const stream = world.devices()[0]->make_stream();
  for (int round = 0; round < 10; ++round) {
    std::vector<u32> in(16, 21), out(16, 0);
    stream->call([] { std::this_thread::sleep_for(20ms); });
    stream->copy(memory, in.data(), Bytes{64});
    auto run = world.launch(Double{window}, {.streams = {stream.get()}});
    stream->copy(out.data(), memory, Bytes{64});  // the run was not waited for
    stream->synchronize();
    EXPECT_EQ(out, std::vector<u32>(16, 42));
    run.wait();
  }
}

struct FirstUsedLate : Slowly {};  // not loaded by an earlier test

// The copy blocks its thread until the second run has ended. On GPUs it also blocks calls of other
// threads.
TEST(Launch, goes_on_while_a_copy_of_pageable_memory_waits_for_it) {
  auto options = test::options(4);
  options.trace = testing::TempDir() + "meshpost_launch.json";
  World world(options);
  auto const window = world.window<u32>(4);
  auto const stream = world.devices()[0]->make_stream();
  std::vector<Allocation> kept;
  auto* const memory = memory_of(world, kept);
  std::vector<u32> out(16, 1);
  stream->fill(memory, 0, Bytes{64});
  auto first = world.launch(Slowly{window, 50'000'000});
  auto second = world.launch(FirstUsedLate{{window, 1000}}, {.streams = {stream.get()}});
  stream->copy(out.data(), memory, Bytes{64});
  stream->synchronize();
  EXPECT_EQ(out, std::vector<u32>(16, 0));
  first.wait();
  second.wait();
  EXPECT_EQ(window.read(RankId{3}), std::vector<u32>(4, 2));
}

TEST(Launch, that_fails_lets_its_streams_go_on) {
  test::Listener const listener;
  World world(test::options(1));
  auto const stream = world.devices()[0]->make_stream();
  auto run = world.launch(Fails{}, {.streams = {stream.get()}});
  stream->synchronize();
  EXPECT_TRUE(says(error_of([&] { run.wait(); }), Kind::kernel_failed, {"on purpose"}));
  EXPECT_TRUE(
      says(error_of([&] { run.wait(); }), Kind::kernel_failed, {"on purpose"}));  // by every call
}

TEST(Launch, returns_at_once_and_says_when_it_is_done) {
  World world(test::options(2));
  auto const window = world.window<u32>(4);
  auto const begin = std::chrono::steady_clock::now();
  constexpr auto slow = test::timeout_factor * 200ms;
  auto run = world.launch(Slowly{window, static_cast<u64>(std::chrono::nanoseconds(slow).count())});
  auto again = world.launch(Slowly{window, 1000});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, slow * 3 / 4);
  EXPECT_FALSE(run.done());
  EXPECT_FALSE(again.done());
  EXPECT_EQ(window.read(RankId{0}),
            std::vector<u32>(4, 2));  // reads after the runs launched so far
  EXPECT_TRUE(run.done() && again.done());
  std::chrono::duration<double> const seconds = slow;
  EXPECT_GE(run.wait().seconds, seconds.count());
  EXPECT_LT(again.wait().seconds, seconds.count());
}

TEST(Launch, goes_on_to_its_end_if_nobody_waits) {
  World world(test::options(2));
  auto const window = world.window<u32>(4);
  {
    auto const run = world.launch(Slowly{window, 50'000'000});
  }
  EXPECT_EQ(window.read(RankId{1}), std::vector<u32>(4, 1));
}

TEST(Launch, that_nobody_waits_for_and_that_fails_is_warned_of) {
  test::Listener const listener;
  {
    World world(test::options(2));
    auto const run = world.launch(Fails{});
  }
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(listener.warnings()[0].find("on purpose"), std::string::npos);
}

TEST(Launch, that_was_moved_from_or_names_no_stream_is_refused) {
  World world(test::options(1));
  auto const window = world.window<u32>(4);
  auto run = world.launch(Slowly{window, 1000});
  auto other = std::move(run);
  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_TRUE(says(error_of([&] { run.wait(); }), Kind::misuse, {"wait for", "moved from"}));
  EXPECT_TRUE(says(error_of([&] { run.done(); }), Kind::misuse, {"look at", "moved from"}));
  // NOLINTEND(bugprone-use-after-move)
  other.wait();
  EXPECT_TRUE(says(error_of([&] { world.run(Slowly{window, 1000}, {.streams = {nullptr}}); }),
                   Kind::bad_argument, {"launch meshpost::Slowly", "Launch::streams", "null"}));
  world.run(Slowly{window, 1000});
}

TEST(Launch, may_be_waited_for_after_its_world_has_ended) {
  std::optional<meshpost::Run> run;
  {
    World world(test::options(2));
    run.emplace(world.launch(Slowly{world.window<u32>(4), 20'000'000}));
  }
  EXPECT_TRUE(run->done());
  EXPECT_GT(run->wait().seconds, 0.0);
}

TEST(Launch, of_many_runs_in_a_row_keeps_their_order) {
  World world(test::options(3));
  auto const window = world.window<u32>(2);
  std::vector<meshpost::Run> runs;
  for (int i = 0; i < 50; ++i) runs.push_back(world.launch(Ring{window, 3}));
  for (auto& run : runs) EXPECT_TRUE(run.wait().unconsumed.empty());
  EXPECT_EQ(window.read(RankId{0})[0], 150u);
}

TEST(Launch, may_come_from_several_threads) {
  World world(test::options(2));
  auto const window = world.window<u32>(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        auto const own = world.window<u32>(2);
        world.run(Ring{own, 2});
        EXPECT_EQ(own.read(RankId{0})[0], 2u);
        world.free(own);
        world.run(Ring{window, 1});
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(window.read(RankId{1})[0], 40u);
}

TEST(Worlds, may_be_several_on_the_same_devices) {
  World one(test::options(2)), two(test::options(3));
  auto const a = one.window<u32>(2), b = two.window<u32>(2);
  for (int i = 0; i < 5; ++i) {
    one.run(Ring{a, 2});
    two.run(Ring{b, 2});
  }
  EXPECT_EQ(a.read(RankId{0})[0], 10u);
  EXPECT_EQ(b.read(RankId{0})[0], 10u);
}

TEST(Worlds, of_two_threads_take_turns_on_the_same_devices) {
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 2; ++t)
    threads.emplace_back([t] {
      World world(test::options(4 + t));
      auto const window = world.window<u32>(2);
      std::vector<meshpost::Run> runs;
      for (int i = 0; i < 20; ++i) {
        runs.push_back(world.launch(Ring{window, 5}));
        if (i % 3 == 0) runs.back().wait();
      }
      for (auto& run : runs) run.wait();
      EXPECT_EQ(window.read(RankId{world.size() - 1})[0], 100u);
    });
  for (auto& thread : threads) thread.join();
}

TEST(Worlds, come_and_go) {
  for (u32 i = 0; i < 10; ++i) {
    World world(test::options(1 + i % 3));
    auto const window = world.window<u32>(2 + (i << 16));
    world.run(Ring{window, 2});
    EXPECT_EQ(window.read(RankId{0})[0], 2u);
  }
}

TEST(Worlds, still_work_after_failed_runs) {
  test::Listener const listener;
  World world(test::options(2));
  auto const window = world.window<u32>(2, Tags{1});
  for (u32 i = 1; i <= 5; ++i) {
    EXPECT_TRUE(says(error_of([&] { world.run(Fails{}); }), Kind::kernel_failed, {"on purpose"}));
    EXPECT_TRUE(
        says(error_of([&] { world.run(Waits{window}); }), Kind::deadlock, {"waits for tag 0"}));
    world.run(Ring{window, 3});
    EXPECT_EQ(window.read(RankId{1})[0], 3 * i);
  }
}

TEST(Worlds, know_their_devices_and_ranks) {
  World world(test::options(5));
  EXPECT_EQ(world.ranks_per_device(), 5u);
  EXPECT_EQ(world.size(), 5 * world.device_count());
  EXPECT_EQ(world.devices().size(), world.device_count());
  EXPECT_GE(World(test::options(0)).ranks_per_device(),
            16u);  // by default as many as suit the device
}

}  // namespace
}  // namespace meshpost
