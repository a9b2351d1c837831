// Runs that are launched one behind the other. Each finds the results of the previous one, and a
// failure ends those behind it.
#include <thread>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

// One step: each rank sends its value plus one to the next rank. So after `steps` runs every word
// is the number of runs.
struct Step {
  Window<u32> inbox;
  u32 number;  // from 1 on
  u32 fails;   // in this step, by its last rank
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    if (number == fails && self.id() == self.size() - 1) self.fail("the step that fails");
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = mine[number % 2 == 0 ? 2 : 3] + 1;
    self.put_notify(inbox.at(next, number % 2 == 0 ? 3 : 2), mine.subspan(1, 1), Tag{number % 5});
    self.wait(inbox, Tag{number % 5});
  }
};

struct LeaveOne {  // which is never consumed
  Window<u32> inbox;
  u32 tag;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) self.notify(inbox, RankId{self.size() - 1}, Tag{tag});
    self.start_timer();
    self.stop_timer();
  }
};

struct Idle {
  MESHPOST_FN void operator()(Rank&) const {}
};

using Runs = std::vector<meshpost::Run>;

class Queue : public testing::Test {
 protected:
  World world_{test::options(2, test::devices(test::Spread::several_devices))};
  Window<u32> inbox_ = world_.window<u32>(4, Tags{5}, "inbox");

  Runs launch(u32 steps, u32 fails) {
    Runs runs;
    for (u32 step = 1; step <= steps; ++step)
      runs.push_back(world_.launch(Step{inbox_, step, fails}));
    return runs;
  }
  void expect(u32 value, u32 place) {
    for (u32 rank = 0; rank < world_.size(); ++rank)
      EXPECT_EQ(inbox_.read(RankId{rank})[place], value) << "rank " << rank;
  }
};

TEST_F(Queue, of_a_hundred_runs_goes_on_where_the_last_one_ended) {
  auto runs = launch(100, 0);
  runs.back().wait();
  for (auto& run : runs) {
    EXPECT_TRUE(run.done());
    EXPECT_TRUE(run.wait().unconsumed.empty());
  }
  expect(100, 3);
}

TEST_F(Queue, is_seen_to_though_nobody_waits) {
  auto runs = launch(20, 0);
  while (!runs.back().done()) std::this_thread::yield();
  expect(20, 3);
}

TEST_F(Queue, is_over_before_the_host_reads_a_window) {
  auto const runs = launch(50, 0);
  expect(50, 3);
}

TEST_F(Queue, takes_launches_and_waits_of_several_threads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) {
        auto first = world_.launch(Idle{}), second = world_.launch(Idle{});
        if (k % 2 == 0) second.wait();
        first.wait();
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST_F(Queue, tells_each_run_what_it_left) {
  test::Listener const listener;
  Runs runs;
  for (u32 i = 0; i < 20; ++i) {
    runs.push_back(world_.launch(LeaveOne{inbox_, i % 5}));
    runs.push_back(world_.launch(Idle{}));
  }
  for (u32 i = 0; i < 20; ++i) {
    auto const& result = runs[2 * i].wait();
    ASSERT_EQ(result.unconsumed.size(), 1u) << i;
    EXPECT_EQ(result.unconsumed[0].tag.value, i % 5);
    EXPECT_EQ(result.unconsumed[0].rank.value, world_.size() - 1);
    EXPECT_EQ(result.unconsumed[0].sender.value, 0u);
    EXPECT_EQ(result.timings.at(0).size(), 1u);
    EXPECT_TRUE(runs[2 * i + 1].wait().unconsumed.empty());
    EXPECT_TRUE(runs[2 * i + 1].wait().timings.at(0).empty());
  }
}

TEST_F(Queue, is_waited_for_by_another_thread_while_its_world_ends) {
  std::vector<std::thread> waiting;
  {
    World world(test::options(2, test::devices(test::Spread::several_devices)));
    auto const inbox = world.window<u32>(4, Tags{5});
    for (u32 step = 1; step <= 20; ++step)
      waiting.emplace_back([run = world.launch(Step{inbox, step, 0})]() mutable { run.wait(); });
  }
  for (auto& thread : waiting) thread.join();
}

class QueueFailures : public Queue, public testing::WithParamInterface<u32> {};

TEST_P(QueueFailures, end_what_is_behind_and_nothing_else) {
  u32 const fails = GetParam();
  auto runs = launch(100, fails);
  for (u32 step = 1; step < fails; ++step) EXPECT_NO_THROW(runs[step - 1].wait()) << step;
  auto const first = test::error_of([&] { runs[fails - 1].wait(); });
  EXPECT_TRUE(test::says(first, Kind::kernel_failed, {"the step that fails"}));
  // A run launched after the failure was known is not affected.
  u32 behind = 0;
  for (u32 step = fails + 1; step <= 100; ++step) try {
      runs[step - 1].wait();
      break;
    } catch (Error const& error) {
      EXPECT_TRUE(test::says(error, Kind::kernel_failed, {"queued behind", "the step that fails"}));
      ++behind;
    }
  for (u32 step = fails + behind + 1; step <= 100; ++step) EXPECT_NO_THROW(runs[step - 1].wait());
  // And the World is usable again.
  for (u32 rank = 0; rank < world_.size(); ++rank)
    inbox_.write(RankId{rank}, 0, std::vector<u32>(4));
  launch(10, 0).back().wait();
  expect(10, 3);
}

INSTANTIATE_TEST_SUITE_P(At, QueueFailures, testing::Values(1u, 50u, 100u),
                         [](auto const& one) { return "step_" + std::to_string(one.param); });

}  // namespace
}  // namespace meshpost
