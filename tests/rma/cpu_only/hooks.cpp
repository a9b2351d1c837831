// Schedules and losses that tests cause at steps of the protocols.
#include "support/hooks.hpp"

#include <atomic>

#include "support/errors.hpp"

namespace meshpost {
namespace {

using hooks::Action;
using hooks::Step;
using test::error_of;
using test::Installed;
using test::mixed;
using test::says;

struct Exchange {  // all ranks with all ranks, with barriers and a sum between
  Window<u32> inbox;
  u32 rounds;
  test::Findings findings;
  void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    auto const mine = inbox.local(self);
    auto const out = mine.subspan(n, n), sum = mine.subspan(2 * n, 1);
    for (u32 round = 0; round < rounds; ++round) {
      self.each(n, [&](u64 to) { out[to] = static_cast<u32>(mixed(me, to, round)); });
      self.sync();
      for (u32 i = 0; i < n; ++i) {
        u32 const to = (me + i) % n;
        self.put_notify(inbox.at(RankId{to}, me), out.subspan(to, 1), Tag{me});
      }
      for (u32 from = 0; from < n; ++from) {
        self.wait(inbox, Tag{from});
        findings.add(self, mine[from] != static_cast<u32>(mixed(from, me, round)));
      }
      if (self.thread() == 0) sum[0] = me + round;
      self.all_reduce(self.state().tags.communicator, sum, Sum{});
      findings.add(self, sum[0] != n * (n - 1) / 2 + n * round);
      self.barrier();
    }
  }
};

TEST(Hooks, that_delay_every_step_by_seed_change_no_result) {
  for (u64 seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Delays const delays(seed, 3);
    World world(test::options(static_cast<u32>(1 + seed % 5), seed % 2 ? "cpu:1" : "cpu:3"));
    auto const findings = test::make_findings(world);
    world.run(Exchange{world.window<u32>(2 * world.size() + 1, Tags{world.size()}), 5, findings},
              {.threads = {seed % 7 == 0 ? 4u : 0u, 1, 1}});
    EXPECT_EQ(test::total(world, findings), 0u);
    EXPECT_GT(delays.asked(), 0u);
  }
}

TEST(Hooks, that_hold_one_rank_back_at_one_step_change_no_result) {
  for (u32 step = 0; step < static_cast<u32>(Step::count); ++step) {
    SCOPED_TRACE(hooks::name(static_cast<Step>(step)));
    std::atomic<int> held{200};
    Installed const hook([&](Step at, unsigned rank) {
      return static_cast<u32>(at) == step && rank == 1 && held-- > 0 ? Action::delay
                                                                     : Action::proceed;
    });
    World world(test::options(2, "cpu:2"));
    auto const findings = test::make_findings(world);
    world.run(Exchange{world.window<u32>(2 * world.size() + 1, Tags{world.size()}), 3, findings});
    EXPECT_EQ(test::total(world, findings), 0u);
  }
}

struct Ring {
  Window<u32> inbox;
  void operator()(Rank& self) const {
    auto const mine = inbox.local(self);
    mine[1] = self.id() + 1;
    self.put_notify(inbox.at(RankId{(self.id() + 1) % self.size()}), mine.subspan(1, 1), Tag{3});
    self.wait(inbox, Tag{3});
  }
};

Action at(Step wanted, unsigned who, Step step, unsigned rank, Action action) {
  return step == wanted && rank == who ? action : Action::proceed;
}

TEST(Hooks, that_drop_a_notification_leave_a_deadlock_that_is_named) {
  World world(test::options(3, "cpu:1"));
  auto const inbox = world.window<u32>(2, Tags{4}, "inbox");
  Installed const hook(
      [](Step step, unsigned rank) { return at(Step::notify_raise, 1, step, rank, Action::drop); });
  EXPECT_TRUE(
      says(error_of([&] { world.run(Ring{inbox}); }), Kind::deadlock,
           {"rank 2 waits for tag 3 of window 'inbox', 0 of 1 arrived; nobody has sent it yet"}));
}

TEST(Hooks, that_drop_the_bytes_of_a_put_leave_what_was_there) {
  World world(test::options(3, "cpu:1"));
  auto const inbox = world.window<u32>(2);
  inbox.write(RankId{2}, 0, std::vector<u32>{77});
  Installed const hook(
      [](Step step, unsigned rank) { return at(Step::put_copy, 1, step, rank, Action::drop); });
  world.run(Ring{inbox});
  EXPECT_EQ(inbox.read(RankId{2})[0], 77u);
  EXPECT_EQ(inbox.read(RankId{1})[0], 1u);
}

TEST(Hooks, that_end_a_rank_are_named_with_their_step) {
  World world(test::options(3, "cpu:2"));
  auto const inbox = world.window<u32>(2);
  for (auto const step : {Step::put_copy, Step::notify_raise, Step::wait_begin, Step::wait_consume,
                          Step::rank_start, Step::rank_end}) {
    {
      Installed const hook(
          [step](Step one, unsigned rank) { return at(step, 1, one, rank, Action::fail); });
      EXPECT_TRUE(
          says(error_of([&] { world.run(Ring{inbox}); }), Kind::kernel_failed,
               {"on rank 1 (cpu:0)", "a test hook ended it at " + std::string(hooks::name(step))}));
    }
    EXPECT_TRUE(world.run(Ring{inbox}).unconsumed.empty());
  }
}

struct SharedEdges {  // a put whose source is its target
  Window<u32> window;
  void operator()(Rank& self) const {
    auto const mine = window.local(self);
    self.put_notify(window.at(self.id(), 1), mine.subspan(1, 2), Tag{0});
    self.wait(window, Tag{0});
  }
};

TEST(Hooks, show_that_a_put_onto_itself_copies_nothing) {
  World world(test::options(2, "cpu:2"));
  std::atomic<int> copies{0}, notifications{0};
  Installed const hook([&](Step step, unsigned) {
    copies += step == Step::put_copy;
    notifications += step == Step::notify_raise;
    return Action::proceed;
  });
  world.run(SharedEdges{world.window<u32>(4)});
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(notifications, 4);
}

}  // namespace
}  // namespace meshpost
