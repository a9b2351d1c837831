// Processes are lost, while ranks run or between runs. All others end soon, and name them.
#include <meshpost/meshpost.hpp>

#include <chrono>
#include <random>
#include <thread>

#include "base/host_hooks.hpp"
#include "support/job.hpp"
#include "support/sanitized.hpp"

namespace meshpost {
namespace {

using test::print_error;
using test::Role;
using test::say;
using testing::AllOf;
using testing::HasSubstr;

struct Meet {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

// Runs without end, until a process is killed.
struct Rounds {
  Window<int> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const next = RankId{(self.id() + 1) % self.size()};
    for (;;) {
      self.notify(inbox, next, Tag{0});
      self.wait(inbox, Tag{0});
    }
  }
};
Role const rounds("rounds", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{1}, "inbox");
  say("begins");
  print_error([&] { world.run(Rounds{inbox}); });
  print_error([&] { world.window<int>(1); });
});
// Memory of users is freed as soon as its process knows of the loss, while others may still run.
struct Puts {
  Window<int> numbers, source;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const next = RankId{(self.id() + 1) % self.size()};
    auto const mine = source.local(self);
    for (;;) {
      for (u64 i = 0; i < 1000; ++i) self.put(numbers.at(next, i), mine.subspan(i, 1));
      self.notify(numbers, next, Tag{0});
      self.test(numbers, Tag{0});
    }
  }
};
Role const many_puts("puts", [] {
  Allocation memory;
  {
    World world;
    memory = World::allocate(*world.devices()[0], Bytes{2000 * sizeof(int)});
    std::vector<std::span<int>> parts(world.size());
    for (u32 local = 0; local < 2; ++local)
      parts[world.first_rank() + local] = {memory.as<int>() + local * 1000, 1000};
    auto const numbers = world.register_memory(parts, Tags{1});
    auto const source = world.window<int>(1000);
    say("begins");
    print_error([&] { world.run(Puts{numbers, source}); });
  }
  memory = {};
});
// There are three processes of two ranks. The first four ranks wait and the last goes on, until it
// is killed.
struct Waiting {
  Window<int> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const rank = self.id().value;
    if (rank < 4) self.notify(inbox, RankId{5}, Tag{1});
    if (rank == 0) self.wait(inbox, Tag{0}, 1, RankId{4});
    if (rank == 1) self.wait(inbox, Tag{0}, 1, RankId{2});
    if (rank == 2 || rank == 4) self.wait(inbox, Tag{0});
    if (rank == 3) self.barrier();
    if (rank != 5) return;
    self.wait(inbox, Tag{1}, 4);
    self.log("all wait");
    while (!self.test(inbox, Tag{0})) {
    }
  }
};
Role const four_wait("four_wait", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{2}, "inbox");
  print_error([&] { world.run(Waiting{inbox}); });
});
// Rank 1 waits for rank 2, which is lost, and rank 0 sends to it.
struct SendsToLost {
  Window<int> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 1) self.wait(inbox, Tag{0}, 1, RankId{2});
    if (self.id() == 2) self.log("begins");
    for (;;) {
      if (self.id() == 0) self.notify(inbox, RankId{2}, Tag{1});
      self.test(inbox, Tag{1});
    }
  }
};
Role const sends_to_lost("sends_to_lost", [] {
  World world;
  auto const inbox = world.window<int>(1, Tags{2}, "inbox");
  hooks::install_host_hook([](std::string_view place) {
    if (place == "hear other processes")
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  print_error([&] { world.run(SendsToLost{inbox}); });
});
// Host calls without end.
Role const calls("calls", [] {
  World world;
  say("begins");
  print_error([&] {
    for (;;) {
      auto const window = world.window<u64>(3000);
      world.run(Meet{});
      world.free(window);
    }
  });
});

void kill_one(char const* role, u32 processes, u32 victim, std::chrono::microseconds after) {
  SCOPED_TRACE(testing::Message() << role << ", process " << victim << " of " << processes
                                  << " killed after " << after.count() << " us");
  test::Job job(role, processes, {{"MESHPOST_RANKS", "2"}});
  for (u32 process = 0; process < processes; ++process) job.wait_for(process, "begins");
  std::this_thread::sleep_for(after);
  job.kill(victim);
  auto const ended = job.wait();
  for (u32 process = 0; process < processes; ++process) {
    if (process == victim) continue;
    EXPECT_TRUE(ended[process].well()) << ended[process].out;
    EXPECT_THAT(ended[process].out, AllOf(HasSubstr("[peer lost]"),
                                          HasSubstr("process " + std::to_string(victim) + " (")));
    EXPECT_LT(ended[process].seconds, 2 * test::timeout_factor);
  }
}

TEST(JobLoss, of_a_process_in_a_run_is_named_by_all_others_within_two_seconds) {
  for (u32 const victim : {0, 1, 2}) kill_one("rounds", 3, victim, std::chrono::milliseconds(20));
}

TEST(JobLoss, leaves_memory_of_users_that_others_still_write_to) {
  for (u32 const victim : {0, 1, 2, 2}) kill_one("puts", 3, victim, std::chrono::milliseconds(20));
}

TEST(JobLoss, at_any_moment_ends_all_others) {
  std::random_device seed;
  std::mt19937 random(seed());
  for (int i = 0; i < 6; ++i) {
    u32 const processes = 2 + static_cast<u32>(random() % 4);
    kill_one(i % 2 == 0 ? "calls" : "rounds", processes, static_cast<u32>(random() % processes),
             std::chrono::microseconds(random() % 30'000));
  }
}

TEST(JobLoss, leaves_each_process_to_say_what_it_knows_and_no_more) {
  test::Job job("four_wait", 3, {{"MESHPOST_RANKS", "2"}});
  job.wait_for(2, "all wait");
  std::this_thread::sleep_for(test::timeout_factor *
                              std::chrono::milliseconds(150));  // they do, or are about to
  job.kill(2);
  auto const ended = job.wait();
  EXPECT_THAT(
      ended[0].out,
      AllOf(HasSubstr("rank 4, which is expected to send it, is in process 2, which is gone"),
            HasSubstr("rank 2, which is expected to send it, is in process 1")));
  EXPECT_THAT(ended[0].out, testing::Not(HasSubstr("process 1, which is gone")));
  EXPECT_THAT(ended[1].out, AllOf(HasSubstr("rank 2 waits for tag 0 of window 'inbox', 0 of 1 "
                                            "arrived; nobody has sent it yet"),
                                  HasSubstr("rank 3 waits in barrier of the world; not there yet: "
                                            "rank 2, which waits itself; ranks 4, 5 are in process "
                                            "2, which is gone")));
  for (u32 const process : {0, 1})
    EXPECT_THAT(ended[process].out,
                testing::Not(testing::AnyOf(HasSubstr("still running"), HasSubstr("cycle: "))));
}

// The network's engine sees it first, because a rank sends.
TEST(JobLoss, is_told_as_well_if_the_network_sees_it_before_the_job) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("sends_to_lost", 3, {{"MESHPOST_RANKS", "1"}}, [](u32 process) -> test::Variables {
    return {{"MESHPOST_NODE", std::to_string(process)}};
  });
  job.wait_for(2, "begins");
  job.kill(2);
  auto const ended = job.wait();
  for (u32 const process : {0, 1})
    EXPECT_THAT(ended[process].out, AllOf(HasSubstr("error: run "), HasSubstr("process 2 ("),
                                          HasSubstr("[peer lost]")));
  EXPECT_THAT(
      ended[1].out,
      HasSubstr("rank 1 waits for tag 0 of window 'inbox', 0 of 1 arrived; rank 2, which is "
                "expected to send it, is in process 2, which is gone"));
}

// The deadline of runs does not matter for that.
TEST(JobLoss, of_a_process_that_is_stopped_is_named_after_the_deadline_for_peers) {
  test::Job job(
      "rounds", 3,
      {{"MESHPOST_RANKS", "1"}, {"MESHPOST_DEADLINE", "0"}, {"MESHPOST_PEER_DEADLINE", "2"}});
  for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
  job.kill(1, SIGSTOP);
  job.wait_for(0, "error: ");
  job.wait_for(2, "error: ");
  job.kill(1, SIGKILL);
  auto const ended = job.wait();
  for (u32 const process : {0, 2})
    EXPECT_THAT(ended[process].out,
                AllOf(HasSubstr("process 1 ("), HasSubstr("no sign of life for 2 s")));
}

}  // namespace
}  // namespace meshpost
