// The proxy lives as long as its World: runs follow each other in its rings and command queues, and
// it sleeps between them.
#include "support/boxed.hpp"
#include "support/errors.hpp"
#include "support/everything.hpp"
#include "support/own_threads.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

constexpr auto of_both_kinds = "cpu:1,boxed:0";

struct LivingProxyCpuOnly : testing::Test {
  LivingProxyCpuOnly() { test::register_boxed(); }
};

WorldOptions apart_on(std::string const& devices, u32 ranks) {
  auto options = test::options(ranks, devices);
  options.apart = true;
  return options;
}

struct TellsTheFar {  // `count` times, with bytes
  Window<u32> inbox;
  u32 count, run;
  void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const other{(self.id() + n / 2) % n};
    auto const mine = inbox.local(self);
    for (u32 i = 0; i < count; ++i) {
      mine[1] = run * 1000 + i;
      self.put_notify(inbox.at(other), mine.subspan(1, 1), Tag{0});
      self.wait(inbox, Tag{0});
      if (mine[0] != run * 1000 + i) self.fail("these bytes are of another run");
      self.notify(inbox, other, Tag{1});  // the bytes were read
      self.wait(inbox, Tag{1});
    }
  }
};

struct LeavesUnread {  // a count and bytes for which no rank waits
  Window<u32> inbox;
  void operator()(Rank& self) const {
    u32 const n = self.size();
    auto const mine = inbox.local(self);
    mine[1] = self.id() + 7;
    self.put_notify(inbox.at(RankId{(self.id() + n / 2) % n}), mine.subspan(1, 1), Tag{2});
  }
};

struct FailsAmongRequests {  // with used places in rings, and commands in flight
  Window<u32> inbox;
  void operator()(Rank& self) const {
    u32 const n = self.size();
    for (u32 i = 0; i < 300; ++i) {
      self.notify(inbox, RankId{(self.id() + n / 2) % n}, Tag{3});
      if (self.id() == 0 && i == 200) self.fail("the input is odd");
    }
    self.wait(inbox, Tag{3}, 1000);
  }
};

TEST_F(LivingProxyCpuOnly, requests_and_commands_of_many_runs_follow_each_other) {
  for (std::string const devices : {"cpu:2", of_both_kinds}) {
    SCOPED_TRACE(devices);
    World world(apart_on(devices, 2));
    auto const inbox = world.window<u32>(2, Tags{4}, "inbox");
    test::Listener const listener;
    // Slots and commands are used several times, and each run begins at another one.
    for (u32 run = 0; run < (test::sanitized ? 40 : 60); ++run) {
      world.run(TellsTheFar{inbox, 1 + run % 37, run});
      if (run % 10 == 3) {
        auto const result = world.run(LeavesUnread{inbox});
        EXPECT_EQ(result.unconsumed.size(), world.size());
        for (u32 rank = 0; rank < world.size(); ++rank)
          EXPECT_EQ(inbox.read(RankId{rank})[0], (rank + world.size() / 2) % world.size() + 7);
      }
      if (run % 20 == 9) {
        EXPECT_TRUE(says(error_of([&] { world.run(FailsAmongRequests{inbox}); }),
                         Kind::kernel_failed, {"the input is odd"}));
      }
    }
    test::try_everything(world);
  }
}

TEST_F(LivingProxyCpuOnly, run_starts_no_thread) {
  World world(apart_on("cpu:2", 2));
  auto const inbox = world.window<u32>(2, Tags{4}, "inbox");
  world.run(TellsTheFar{inbox, 3, 0});
  auto const before = test::own_threads();
  for (u32 run = 1; run < 20; ++run) {
    world.run(TellsTheFar{inbox, 3, run});
    EXPECT_EQ(test::own_threads(), before);
  }
  error_of([&] { world.run(FailsAmongRequests{inbox}); });
  world.run(TellsTheFar{inbox, 3, 0});
  EXPECT_EQ(test::own_threads(), before);
}

TEST_F(LivingProxyCpuOnly, it_sleeps_between_runs) {
  World world(apart_on("cpu:2", 1));
  auto const inbox = world.window<u32>(2, Tags{4}, "inbox");
  for (bool const fails : {false, true}) {
    if (fails) error_of([&] { world.run(FailsAmongRequests{inbox}); });
    else world.run(TellsTheFar{inbox, 3, 0});
    EXPECT_LT(test::naps_between_runs(test::own_threads()), 40u);
  }
}

}  // namespace
}  // namespace meshpost
