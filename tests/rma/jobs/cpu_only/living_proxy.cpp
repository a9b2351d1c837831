// Between processes: the proxy lives as long as its World.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <thread>

#include "support/job.hpp"
#include "support/own_threads.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using test::require;
using test::Role;
using testing::HasSubstr;

struct PassesOn {
  Window<u32> inbox;
  u32 run;
  bool fails;
  void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = inbox.local(self);
    if (self.test(inbox, Tag{0})) self.fail("this is of an earlier run");
    self.barrier();
    mine[1] = run;
    self.put_notify(inbox.at(next), mine.subspan(1, 1), Tag{0});
    if (fails && self.id() == run % self.size()) self.fail("the input is odd");
    self.wait(inbox, Tag{0});
    if (mine[0] != run) self.fail("these bytes are of another run");
    if (fails) self.barrier();
  }
};

Role const runs_in_a_row("runs_in_a_row", [] {
  World world(test::world_options());
  auto const inbox = world.window<u32>(2, Tags{1}, "inbox");
  world.run(PassesOn{inbox, 0, false});
  world.run(PassesOn{inbox, 1, false});
  auto const threads = test::own_threads();
  for (u32 run = 2; run < 60; ++run) {
    bool const fails = run % 16 == 7;
    // Processes begin at different times; each is sometimes the last.
    if (run % (3 + world.process()) == 0) std::this_thread::sleep_for(1ms);
    if (fails) test::print_error([&] { world.run(PassesOn{inbox, run, true}); });
    else world.run(PassesOn{inbox, run, false});
  }
  require(test::own_threads() == threads, "no run has started a thread");
  // A question of another process, which may be ahead, wakes a thread for 40 naps: several tries.
  auto naps = test::naps_between_runs(threads);
  for (u32 tries = 1; naps >= 100 && tries < 10; ++tries) naps = test::naps_between_runs(threads);
  require(naps < 100, "threads sleep between runs");
  world.run(PassesOn{inbox, 100, false});
  std::printf("went well\n");
});

TEST(JobLivingProxyCpuOnly, many_runs_follow_each_other_and_none_starts_a_thread) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("runs_in_a_row", 3, {{"MESHPOST_RANKS", "2"}}, [](u32 process) {
    return test::Variables{{"MESHPOST_NODE", std::to_string(process)}};
  });
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("went well"));
}

}  // namespace
}  // namespace meshpost
