// Nothing hangs: a run that can't go on ends with an error that says which rank waits for which.
#include <chrono>

#include "support/errors.hpp"
#include "support/own_threads.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::says;

struct AllWait {  // each waits for the previous rank, given by name or known from an earlier
                  // message
  Window<u32> window;
  bool by_name, sent_before;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n}, previous{(self.id() + n - 1) % n};
    if (sent_before) {
      self.notify(window, next, Tag{3});
      self.wait(window, Tag{3});
    }
    if (by_name) self.wait(window, Tag{3}, 2, previous);
    else self.wait(window, Tag{3}, 2);
  }
};

struct SenderEnds {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.notify(window, RankId{1}, Tag{5});
    if (self.id() == 1) {
      self.wait(window, Tag{5});
      self.wait(window, Tag{5});
    }
  }
};

struct OneStaysAway {
  MESHPOST_FN void operator()(Rank& self) const {
    self.barrier();
    if (self.id() != 1) self.barrier();
  }
};

struct NeverTrue {
  Window<i32> words;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.wait_until(words.local(self), Compare::greater, 41);
  }
};

struct OneFails {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 1) self.fail("the input is odd");
    self.wait(window, Tag{2}, 1, RankId{1});
  }
};

struct OneThreadFails {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 1 && self.thread() == 0) self.fail("the thread's input is odd");
    self.sync();
    self.wait(window, Tag{2}, 1, RankId{1});
  }
};

// The rank's other threads end well.
struct LastThreadFails {
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 1 && self.thread() + 1 == self.threads()) self.fail("the last input is odd");
  }
};

struct EndlessTests {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    while (!self.test(window, Tag{0})) {
    }
  }
};

struct OneTestsOthersWait {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) self.wait(window, Tag{0});
    while (!self.test(window, Tag{0})) {
    }
  }
};

struct EndlessWaits {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 count = 0;
    do {
      self.wait(window, Tag{0});
      ++count;
    } while (true);
  }
};

// Time of the processor that a CPU device gives the calling thread; on GPUs any time. On a busy
// machine a rank that hardly gets any of the processor isn't held to the deadline.
MESHPOST_FN inline u64 time_to_compute([[maybe_unused]] Rank const& self) {
#if defined(__CUDA_ARCH__)
  return self.now();
#else
  return static_cast<u64>(test::own_processor_time().count());
#endif
}

struct LongComputation {  // rank 0 computes while the others wait for it
  Window<u32> window;
  u64 nanoseconds;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) {
      // Less than the 10 s after a failure in which it has to end.
      constexpr u64 longest = 9'000'000'000;
      u64 const begin = self.now(), computed = time_to_compute(self);
      while (self.thread() == 0 && time_to_compute(self) - computed < nanoseconds &&
             self.now() - begin < longest) {
      }
      self.sync();
      for (u32 to = 1; to < self.size(); ++to) self.notify(window, RankId{to}, Tag{0});
    } else {
      self.wait(window, Tag{0});
    }
  }
};

struct RingOfNotifications {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    self.notify(window, RankId{(self.id() + 1) % self.size()}, Tag{3});
    self.wait(window, Tag{3});
  }
};

class Hang : public testing::TestWithParam<test::Shape> {
 protected:
  /// The error of a run, which must come long before the deadline.
  template <class Kernel>
  Error error_at_once(Kernel const& kernel, World& world) {
    auto const begin = std::chrono::steady_clock::now();
    auto error = error_of([&] { world.run(kernel, launch); });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s) << "the deadline is 30 s";
    EXPECT_EQ(error_of([&] { world.run(kernel, launch); }).what(), std::string(error.what()))
        << "the second time";
    world.run(RingOfNotifications{window_of(world)}, launch);  // the world still works
    return error;
  }
  Window<u32> window_of(World& world) { return world.window<u32>(1, Tags{8}, "inbox"); }
  WorldOptions options(u32 ranks) {
    auto wanted = test::options(ranks, test::devices(GetParam().spread));
    wanted.deadline = 30s;
    wanted.workers = 2;  // so that others wait while one rank computes
    return wanted;
  }
  Launch launch = test::launch_of(GetParam());
  test::Listener listener;
};
INSTANTIATE_TEST_SUITE_P(Shapes, Hang,
                         testing::Values(test::Shape{test::Spread::one_device, 3, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 2, {0, 1, 1}},
                                         test::Shape{test::Spread::several_devices, 3,
                                                     test::warp_threads}),
                         test::shape_name);

TEST_P(Hang, of_ranks_in_a_circle_is_a_deadlock_that_names_it) {
  World world(options(GetParam().ranks));
  auto const error = error_at_once(AllWait{window_of(world), true, false}, world);
  EXPECT_TRUE(says(
      error, Kind::deadlock,
      {"AllWait", "waits for tag 3 of window 'inbox', 0 of 2 arrived", "is expected to send it",
       "cycle: rank 0 -> rank " + std::to_string(world.size() - 1)}));
}

TEST_P(Hang, of_ranks_that_heard_from_each_other_before_names_the_senders) {
  World world(options(GetParam().ranks));
  auto const error = error_at_once(AllWait{window_of(world), false, true}, world);
  auto const last = std::to_string(world.size() - 1);
  EXPECT_TRUE(says(error, Kind::deadlock,
                   {"rank 0 waits for tag 3",
                    "0 of 2 arrived; rank " + last + ", which sent it before, waits itself",
                    "cycle: rank 0 -> rank " + last, "send what is awaited"}));
}

TEST_P(Hang, of_a_rank_whose_sender_has_ended_says_so) {
  World world(options(GetParam().ranks));
  auto const error = error_at_once(SenderEnds{window_of(world)}, world);
  EXPECT_TRUE(says(error, Kind::deadlock,
                   {"rank 1 waits for tag 5 of window 'inbox', 0 of 1 arrived; rank 0, which "
                    "sent it before, has ended"}));
}

TEST_P(Hang, in_a_barrier_names_who_is_missing) {
  World world(options(GetParam().ranks));
  auto const error = error_at_once(OneStaysAway{}, world);
  EXPECT_TRUE(
      says(error, Kind::deadlock,
           {"rank 0 waits in barrier of the world; not there yet: rank 1, which has ended"}));
}

TEST_P(Hang, of_a_polled_word_shows_its_value) {
  World world(options(GetParam().ranks));
  auto const words = world.window<i32>(1);
  words.write(RankId{0}, 0, std::vector<i32>{-7});
  auto const error = error_at_once(NeverTrue{words}, world);
  EXPECT_TRUE(says(error, Kind::deadlock, {"rank 0 waits until its word is > 41, it is -7"}));
}

TEST_P(Hang, after_a_rank_failed_names_it_and_who_waits) {
  World world(options(GetParam().ranks));
  auto const window = window_of(world);
  for (int i = 0; i < 3; ++i) {
    auto const error = error_of([&] { world.run(OneFails{window}, launch); });
    EXPECT_TRUE(
        says(error, Kind::kernel_failed, {"fail in ", "OneFails on rank 1 (", "the input is odd"}));
  }
  world.run(RingOfNotifications{window}, launch);
}

TEST_P(Hang, because_one_thread_has_failed_is_named) {
  World world(options(GetParam().ranks));
  auto const window = window_of(world);
  for (int i = 0; i < 3; ++i) {
    auto const first = error_of([&] { world.run(OneThreadFails{window}, launch); });
    EXPECT_TRUE(says(first, Kind::kernel_failed,
                     {"OneThreadFails on rank 1 (", "the thread's input is odd"}));
    auto const last = error_of([&] { world.run(LastThreadFails{}, launch); });
    EXPECT_TRUE(
        says(last, Kind::kernel_failed, {"LastThreadFails on rank 1 (", "the last input is odd"}));
  }
  world.run(RingOfNotifications{window}, launch);
}

TEST_P(Hang, in_an_endless_loop_of_waits_ends) {
  World world(options(GetParam().ranks));
  auto const error = error_at_once(EndlessWaits{window_of(world)}, world);
  EXPECT_TRUE(says(error, Kind::deadlock, {"rank 0 waits for tag 0"}));
}

TEST_P(Hang, in_an_endless_loop_of_tests_ends_after_the_deadline) {
  World world(options(GetParam().ranks));
  launch.deadline = 300ms;
  auto const window = window_of(world);
  EXPECT_TRUE(says(error_of([&] { world.run(EndlessTests{window}, launch); }), Kind::deadline,
                   {"EndlessTests", "no rank got on for 0.3 s", "MESHPOST_DEADLINE",
                    " tests tag 0 of window 'inbox' again and again, 0 of 1 arrived"}));
  EXPECT_TRUE(says(error_of([&] { world.run(OneTestsOthersWait{window}, launch); }), Kind::deadline,
                   {"rank 1 waits for tag 0 of window 'inbox'"}));
  world.run(RingOfNotifications{window}, launch);
}

TEST_P(Hang, is_not_seen_where_one_rank_computes_for_less_than_the_deadline) {
  World world(options(GetParam().ranks));
  launch.deadline = 20s;
  world.run(LongComputation{window_of(world), 700'000'000}, launch);
}

struct SlowRank {  // rank 0 does something every 100 ms, while the others wait for it
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return self.wait(window, Tag{0});
    for (u32 step = 0; step < 12; ++step) {
      u64 const begin = self.now();
      while (self.thread() == 0 && self.now() - begin < 100'000'000) {
      }
      self.notify(window, RankId{0}, Tag{1});
    }
    for (u32 to = 1; to < self.size(); ++to) self.notify(window, RankId{to}, Tag{0});
    self.wait(window, Tag{1}, 12);
  }
};

// Also on a GPU, where a sign of life goes over PCIe and would be too slow for every operation.
TEST_P(Hang, is_not_seen_where_a_rank_that_computes_does_something_within_each_deadline) {
  World world(options(GetParam().ranks));
  launch.deadline = 1s;
  world.run(SlowRank{window_of(world)}, launch);
}

TEST_P(Hang, of_a_rank_that_computes_longer_than_the_deadline_ends_the_run) {
  World world(options(GetParam().ranks));
  launch.deadline = 200ms;
  auto const window = window_of(world);
  EXPECT_TRUE(says(
      error_of([&] { world.run(LongComputation{window, 1'000'000'000}, launch); }), Kind::deadline,
      {"no rank got on for 0.2 s", "rank " + std::to_string(world.size() - 1) + " waits for tag 0",
       "not in a wait", "Launch::deadline"}));
  launch.deadline = 0ms;  // never
  world.run(LongComputation{window, 500'000'000}, launch);
}

TEST_P(Hang, leaves_counters_at_zero_for_the_next_run) {
  World world(options(GetParam().ranks));
  auto const window = window_of(world);
  for (int i = 0; i < 5; ++i) {
    error_of([&] { world.run(AllWait{window, false, true}, launch); });
    EXPECT_TRUE(world.run(RingOfNotifications{window}, launch).unconsumed.empty());
  }
  EXPECT_TRUE(listener.warnings().empty());
}

struct MiscountsTheEnd {  // like a kernel that writes out of bounds
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() + 1 != self.size() || self.thread() != 0) return;
    // Ranks are counted on their own device, or on all.
    memory::add(&detail::words_on(self.state(), self.device())->arrived, ~0u, Order::system);
    for (u32 device = 0; device < self.state().devices; ++device)
      if (!via::is_far(self.state(), device))
        memory::add(&detail::words_on(self.state(), device)->met, ~0u, Order::system);
  }
};

struct MiscountsDevices {  // the word that tells each device that all are ready for the next run
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() + 1 != self.size() || self.thread() != 0) return;
    memory::add(&detail::words_on(self.state(), self.device())->swept, ~u64{0}, Order::device);
  }
};

TEST_P(Hang, at_the_end_of_a_run_that_miscounts_its_ranks_ends) {
  World world(options(GetParam().ranks));
  launch.deadline = 300ms;
  auto const error = error_of([&] { world.run(MiscountsTheEnd{}, launch); });
  EXPECT_TRUE(error.kind() == Kind::deadline || error.kind() == Kind::deadlock);
  EXPECT_TRUE(says(
      error, error.kind(),
      {"MiscountsTheEnd", "all ranks have ended, but they did not meet", "compute-sanitizer"}));
  EXPECT_TRUE(world.run(RingOfNotifications{window_of(world)}, launch).unconsumed.empty());
}

struct Leaves {
  MESHPOST_FN void operator()(Rank&) const {}
};

// On GPUs it is the second run that waits, at its begin; elsewhere the first, at its end.
TEST_P(Hang, of_a_run_behind_one_that_never_ends_everywhere_ends) {
  World world(options(GetParam().ranks));
  if (world.device_count() == 1) GTEST_SKIP() << "needs several devices";
  launch.deadline = 300ms;
  auto const error = error_of([&] {
    auto first = world.launch(MiscountsDevices{}, launch);
    auto second = world.launch(Leaves{}, launch);
    first.wait();
    second.wait();
  });
  EXPECT_TRUE(error.kind() == Kind::deadline || error.kind() == Kind::deadlock);
  EXPECT_TRUE(says(error, error.kind(),
                   {"all ranks have ended, but they did not meet", "compute-sanitizer"}));
  EXPECT_TRUE(world.run(RingOfNotifications{window_of(world)}, launch).unconsumed.empty());
}

}  // namespace
}  // namespace meshpost
