// Hosts of several processes as endpoints: they notify ranks and are notified by them.
#include <meshpost/meshpost.hpp>

#include "support/job.hpp"

namespace meshpost::job_hosts {
namespace {

using test::require;
using test::Role;

// Each rank is woken by all hosts, and answers all of them.
struct Answer {
  Window<u32> box;
  u32 hosts, times;
  HostId host[4];
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = box.local(self);
    for (u32 i = 0; i < times; ++i) {
      self.wait(box, Tag{0}, hosts);
      if (self.thread() == 0) {
        u32 sum = 0;
        for (u32 k = 0; k < hosts; ++k) sum += mine[k];
        mine[hosts] = sum;
      }
      for (u32 k = 0; k < hosts; ++k) self.notify(box, host[k], Tag{1});
    }
  }
};
struct Consume {
  Window<u32> box;
  u32 count;
  MESHPOST_FN void operator()(Rank& self) const { self.wait(box, Tag{0}, count); }
};
struct Nothing {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};

Role const hosts("hosts_and_ranks_wake_each_other", [] {
  World world(test::world_options());
  u32 const processes = world.processes();
  auto const box = world.window<u32>(processes + 1, Tags{3}, "box");
  Answer answer{box, processes, 20, {}};
  for (u32 k = 0; k < processes; ++k) answer.host[k] = world.host(k);
  Launch launch;
  launch.with_host = true;
  auto run = world.launch(answer, launch);
  for (u32 i = 0; i < answer.times; ++i) {
    u32 const value = 100 * i + world.process();
    for (u32 rank = 0; rank < world.size(); ++rank)
      box.put_notify(RankId{rank}, world.process(), std::span(&value, 1), Tag{0});
    box.wait(Tag{1}, world.size());
    u32 sum = 0;
    for (u32 k = 0; k < processes; ++k) sum += 100 * i + k;
    for (u32 rank = 0; rank < world.size(); ++rank)
      if (i + 1 == answer.times || processes == 1)  // otherwise another host may write again by now
        require(box.read(RankId{rank})[processes] == sum, "what all hosts have put");
  }
  require(run.wait().unconsumed.empty(), "all was consumed");
  // For the next run: all counts are there when it begins, in any order of the processes.
  for (u32 rank = 0; rank < world.size(); ++rank) box.notify(RankId{rank}, Tag{0});
  require(world.run(Consume{box, processes}).unconsumed.empty(), "all was consumed again");
  // One process leaves counts at a rank of another.
  if (world.process() == 1) box.notify(RankId{0}, Tag{2});
  auto const result = world.run(Nothing{});
  require(result.unconsumed.size() == 1 && result.unconsumed[0].sender.value == world.size() + 1,
          "the host of process 1 has sent it");
});

TEST(JobHost, and_ranks_of_all_processes_wake_each_other) {
  test::Job job("hosts_and_ranks_wake_each_other", 3, {{"MESHPOST_RANKS", "2"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  std::string text;
  for (auto const& one : ended) text += one.out;
  EXPECT_THAT(text, testing::HasSubstr("the last from the host of process 1"));
}

struct Fail {
  MESHPOST_FN void operator()(Rank& self) const {
    self.barrier();
    if (self.id() == 0) self.fail("no");
  }
};
// Counts are kept after any earlier failure, and in any order of the processes.
Role const behind("hosts_notify_behind_failures", [] {
  World world(test::world_options());
  auto const box = world.window<u32>(1, Tags{1}, "box");
  Launch launch;
  launch.with_host = true;
  for (u32 i = 0; i < 12; ++i) {
    if (i % 4 == 1) test::print_error([&] { world.run(Fail{}, i % 8 == 1 ? launch : Launch{}); });
    if (i % 4 == 2)
      test::print_error([&] { world.window<u32>(1 + world.process(), Tags{1}, "odd"); });
    for (u32 rank = 0; rank < world.size(); ++rank) box.notify(RankId{rank}, Tag{0});
    auto const result = world.run(Consume{box, world.processes()}, i % 4 == 3 ? launch : Launch{});
    require(result.unconsumed.empty(), "all was consumed");
  }
});

TEST(JobHost, counts_stay_behind_what_went_wrong) {
  test::Job job("hosts_notify_behind_failures", 3, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

Role const differ("one_host_takes_no_part", [] {
  World world(test::world_options());
  Launch launch;
  launch.with_host = world.process() == 0;
  test::print_error([&] { world.run(Nothing{}, launch); });
  world.run(Nothing{});
});

TEST(JobHost, takes_part_in_all_processes_or_in_none) {
  test::Job job("one_host_takes_no_part", 2, {{"MESHPOST_RANKS", "1"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended)
    EXPECT_THAT(one.out, testing::AllOf(testing::HasSubstr("[misuse]"),
                                        testing::HasSubstr("with the host")));
}

}  // namespace
}  // namespace meshpost::job_hosts
