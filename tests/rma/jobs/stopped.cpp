// Processes are stopped and continued (SIGSTOP, Ctrl-Z and fg, a freezer). Their own clocks don't
// end them, because no process could make progress in that time.
#include <meshpost/meshpost.hpp>

#include <optional>
#include <thread>

#include "support/job.hpp"

namespace meshpost {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Rank 0 computes for a while, and all others wait for it.
struct LateNews {
  Window<int> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return self.wait(inbox, Tag{0});
    self.log("computes");
    u64 const begin = self.now();
    while (self.now() - begin < 300'000'000) continue;
    for (u32 to = 1; to < self.size(); ++to) self.notify(inbox, RankId{to}, Tag{0});
  }
};
test::Role const late_news("late_news", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{1}, "inbox");
  world.run(LateNews{inbox});
  world.run(LateNews{inbox});  // all are still there
  test::say("all is well");
});

class JobStopped : public testing::TestWithParam<u32> {};

TEST_P(JobStopped, for_longer_than_its_deadlines_goes_on) {
  u32 const processes = GetParam();
  test::Job job(
      "late_news", processes,
      {{"MESHPOST_RANKS", "2"}, {"MESHPOST_DEADLINE", "2"}, {"MESHPOST_PEER_DEADLINE", "2"}});
  job.wait_for(0, "computes");
  for (u32 process = 0; process < processes; ++process) job.kill(process, SIGSTOP);
  std::this_thread::sleep_for(2500ms);  // longer than the deadline
  for (u32 process = 0; process < processes; ++process) job.kill(process, SIGCONT);
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("all is well"));
}
INSTANTIATE_TEST_SUITE_P(Processes, JobStopped, testing::Values(1u, 3u));

// Process 2 is stopped alone. A stream of process 1 waits for it, and the host of process 0.
test::Role const await_a_stopped_one("await_a_stopped_one", [] {
  World world;
  auto const box = world.window<int>(1, Tags{2}, "box");
  std::optional<StreamEndpoint> stream;
  if (world.process() == 1) stream.emplace(world, 0);
  test::say("is ready");
  while (world.process() == 2) std::this_thread::sleep_for(1s);
  test::print_error([&] {
    if (!stream) return box.wait(Tag{0}, 1, 7s);
    stream->wait(box, Tag{1});
    stream->synchronize();
  });
  std::this_thread::sleep_for(60s);  // the test kills it
});

TEST(JobStoppedCpuOnly, alone_is_named_where_others_wait_in_vain) {
  test::Job job("await_a_stopped_one", 3,
                {{"MESHPOST_RANKS", "1"},
                 {"MESHPOST_DEADLINE", "7"},
                 {"MESHPOST_PEER_DEADLINE", "50"},
                 {"MESHPOST_DEVICES", "cpu:1"}});
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "is ready");
  job.kill(2, SIGSTOP);
  for (u32 const process : {0, 1}) {
    job.wait_for(process, "error: ");
    job.wait_for(process, "process 2 (");
    job.wait_for(process, "no sign of life for");
  }
}

}  // namespace
}  // namespace meshpost
