// A job in which a call of the network does not return (net::Faulty) after a process was lost.
// libfabric's shm does this if that process was killed while it held a lock.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "support/job.hpp"
#include "support/sanitized.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::Role;
using test::say;
using testing::AllOf;
using testing::HasSubstr;

struct Meeting {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// A thread hangs. While ranks wait it is most often their worker; while they compute it is the
// proxy's own thread.
struct Beats {
  Window<int> inbox;
  bool computes;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const next = RankId{(self.id() + 1) % self.size()};
    for (;;) {
      self.notify(inbox, next, Tag{0});
      if (computes) {
        auto const until = memory::clock_ns() + 2'000'000;
        while (memory::clock_ns() < until) {
        }
      }
      self.wait(inbox, Tag{0});
    }
  }
};
void hang(bool computes) {
  {
    World world;
    auto const inbox = world.window<int>(1, Tags{1}, "inbox");
    say("begins");
    print_error([&] { world.run(Beats{inbox, computes}); });
    print_error([&] { world.run(Meeting{}); });
    print_error([&] { world.window<int>(1); });
  }
  say("over");
  // Waits until the thread has returned, if this process is to see that.
  if (std::getenv("MESHPOST_TEST_STAYS")) std::this_thread::sleep_for(std::chrono::seconds(3));
  World(WorldOptions{.alone = true}).run(Meeting{});  // the devices are free
  std::printf("went on\n");
}
Role const hang_waiting("hang_waiting", [] { hang(false); });
Role const hang_computing("hang_computing", [] { hang(true); });

TEST(JobHangCpuOnly, of_the_network_after_a_loss_ends_all_others_within_two_seconds) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  for (bool const stays : {false, true})
    for (char const* const role : {"hang_waiting", "hang_computing"}) {
      SCOPED_TRACE(testing::Message() << role << (stays ? ", stays" : ""));
      test::Variables all{{"MESHPOST_RANKS", "2"}};
      if (stays) all["MESHPOST_TEST_STAYS"] = "1";
      all["TSAN_OPTIONS"] = "report_thread_leaks=0";  // they are expected
      test::Job job(role, 3, all, [](u32 process) -> test::Variables {
        return {{"MESHPOST_NODE", std::to_string(process)},
                {"MESHPOST_NET", process == 0 ? "faulty:hang:7:ofi:tcp" : "ofi:tcp"}};
      });
      for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
      job.wait_for(0, "hangs, as it was told to");
      job.kill(1);
      auto const killed = std::chrono::steady_clock::now();
      for (u32 const process : {0, 2}) job.wait_for(process, "over");
      EXPECT_LT(std::chrono::steady_clock::now() - killed, test::before_it_comes_back);
      auto const ended = job.wait();
      for (u32 const process : {0, 2}) {
        EXPECT_TRUE(ended[process].well()) << ended[process].out;
        EXPECT_THAT(ended[process].out, AllOf(HasSubstr("[peer lost]"), HasSubstr("process 1 ("),
                                              HasSubstr("went on")));
      }
      EXPECT_THAT(ended[0].out, HasSubstr("does not come back from faulty ofi"));
    }
}

}  // namespace
}  // namespace meshpost
