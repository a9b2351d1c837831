// Host calls from places where they are not allowed.
#include <chrono>
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

struct Nothing {
  void operator()(Rank&) const {}
};

enum class Call { run, launch, window, free, read, write, split, make_world };

struct InsideAKernel {
  Call call;
  World* world;
  Window<u32> window;
  void operator()(Rank&) const {
    switch (call) {
      case Call::run: world->run(Nothing{}); break;
      case Call::launch: world->launch(Nothing{}); break;
      case Call::window: world->window<u32>(1); break;
      case Call::free: world->free(window); break;
      case Call::read: window.read(RankId{0}); break;
      case Call::write: window.write(RankId{0}, 0, std::vector<u32>{1}); break;
      case Call::split: world->split(world->communicator(), [](RankId) { return i64{0}; }); break;
      case Call::make_world: World(test::options(1, "cpu:1")); break;
    }
  }
};

TEST(MisuseCpuOnly, of_more_scratch_than_there_is_memory_names_it) {
  if (test::sanitized) GTEST_SKIP() << "sanitizers end the process";
  World world(test::options(3, "cpu:1"));
  EXPECT_TRUE(
      says(error_of([&] { world.run(Nothing{}, {.scratch = Bytes{u64{1} << 46}}); }),
           Kind::out_of_memory,
           {"launch", "3 ranks", "70368744177664 bytes of scratch", "give Launch::scratch less"}));
  world.run(Nothing{}, {.scratch = Bytes{1000}});
}

TEST(InsideAKernel, host_calls_are_refused_and_named) {
  World world(test::options(2, "cpu:2"));
  auto const window = world.window<u32>(4);
  for (auto const call : {Call::run, Call::launch, Call::window, Call::free, Call::read,
                          Call::write, Call::split, Call::make_world})
    EXPECT_TRUE(says(error_of([&] { world.run(InsideAKernel{call, &world, window}); }),
                     Kind::kernel_failed,
                     {"InsideAKernel on rank", "inside a kernel", "[misuse]", "host"}))
        << static_cast<int>(call);
  world.run(Nothing{});
}

// The rank's other threads have gone on, to the end.
struct OneThreadSyncs {
  u32 times;
  void operator()(Rank& self) const {
    for (u32 i = 0; i < times; ++i)
      if (self.id() == 1 && self.thread() == 0) self.sync();
  }
};

TEST(InsideAKernel, threads_of_a_rank_that_wait_for_each_other_end_by_the_deadline) {
  World world(test::options(1, "cpu:2"));
  Launch launch;
  launch.threads = {4, 1, 1};
  launch.with_host = true;
  launch.deadline = std::chrono::milliseconds(200);
  for (u32 const times : {1, 2, 5}) {
    auto const error = error_of([&] { world.run(OneThreadSyncs{times}, launch); });
    EXPECT_TRUE(says(error, Kind::deadline, {"OneThreadSyncs", "threads of a rank wait for each"}))
        << times;
  }
}

struct WaitsForAnotherRun {
  Run* run;
  void operator()(Rank&) const { run->wait(); }
};

TEST(InsideAKernel, nobody_waits_for_a_run) {
  World world(test::options(1, "cpu:1"));
  auto run = world.launch(Nothing{});
  EXPECT_TRUE(says(error_of([&] { world.run(WaitsForAnotherRun{&run}); }), Kind::kernel_failed,
                   {"wait for a run", "inside a kernel"}));
}

TEST(Options, that_ask_for_checked_delivery_and_wrong_devices_are_refused) {
  EXPECT_TRUE(says(error_of([] { World(test::options(1, "cpu:0")); }), Kind::bad_argument,
                   {"devices 'cpu:0'"}));
  EXPECT_TRUE(says(error_of([] { World(test::options(1, "quantum")); }), Kind::bad_argument,
                   {"'quantum'"}));
}

TEST(Options, come_from_the_environment) {
  setenv("MESHPOST_RANKS", "lots", 1);
  EXPECT_TRUE(
      says(error_of([] { World world; }), Kind::bad_environment, {"MESHPOST_RANKS", "'lots'"}));
  setenv("MESHPOST_RANKS", "3", 1);
  setenv("MESHPOST_DEVICES", "cpu:2", 1);
  EXPECT_EQ(World().size(), 6u);
  unsetenv("MESHPOST_RANKS");
  unsetenv("MESHPOST_DEVICES");
}

struct Count {
  std::atomic<u64>* ran;
  void operator()(Rank& self) const {
    self.barrier();
    ++*ran;
  }
};

TEST(Workers, may_be_fewer_or_more_than_ranks_and_cores) {
  for (u32 const workers : {1u, 2u, 3u, 64u}) {
    auto wanted = test::options(5, "cpu:2");
    wanted.workers = workers;
    World world(wanted);
    std::atomic<u64> ran{0};
    world.run(Count{&ran});
    EXPECT_EQ(ran, 10u);
  }
}

}  // namespace
}  // namespace meshpost
