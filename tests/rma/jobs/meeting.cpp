// Ranks of several processes meet at the begin and the end of a run. Their hosts exchange nothing,
// unless one calls something else than the others, or something fails.
#include <meshpost/meshpost.hpp>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "support/job.hpp"
#include "support/worlds.hpp"

namespace meshpost::meeting {
namespace {

using test::print_error;
using test::require;
using test::Role;
using testing::AllOf;
using testing::HasSubstr;

struct Meet {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};
struct Greet {
  MESHPOST_FN void operator()(Rank& self) const { self.barrier(); }
};
struct Refuse {
  u32 who;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == who) self.fail("not today");
    self.barrier();
  }
};
// One rank leaves `counts` at the next, and another takes some time.
struct Leave {
  Window<int> box;
  u32 leaver, counts, timer;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == timer) self.start_timer();
    if (self.id() == leaver)
      for (u32 i = 0; i < counts; ++i)
        self.notify(box, RankId{(self.id() + 1) % self.size()}, Tag{0});
    if (self.id() == timer) self.stop_timer();
  }
};
struct Say {
  MESHPOST_FN void operator()(Rank& self) const {
    self.barrier();
    self.log("hello");
  }
};

void late(u32 process, World const& world) {
  if (world.process() == process) std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// Both kernels are known, so that nothing is agreed on before.
void differ(std::function<void(World&)> const& odd) {
  World world;
  auto const meet = [&] { world.run(Meet{}); };
  for (int i = 0; i < 3; ++i) meet(), world.run(Greet{});
  for (u32 one = 0; one < world.processes(); ++one) {
    print_error([&] { world.process() == one ? odd(world) : meet(); });
    meet();
    world.run(Greet{});
  }
}
Role const greets("greets_instead", [] { differ([](World& world) { world.run(Greet{}); }); });
Role const makes("makes_a_window_instead",
                 [] { differ([](World& world) { world.window<int>(1, Tags{1}, "odd"); }); });
Role const wide("has_more_threads_instead",
                [] { differ([](World& world) { world.run(Meet{}, {.threads = {2}}); }); });
Role const threads("has_as_many_threads_instead", [] {
  World world;
  for (u32 const x : {1, 2}) world.run(Meet{}, {.threads = {x}});
  print_error([&] { world.run(Meet{}, {.threads = {world.process() == 1 ? 2u : 1u}}); });
  world.run(Meet{}, {.threads = {2}});
});

TEST(JobMeeting, finds_out_who_does_something_else) {
  for (auto const* const role : {"greets_instead", "makes_a_window_instead",
                                 "has_more_threads_instead", "has_as_many_threads_instead"}) {
    test::Job job(role, 3, {{"MESHPOST_RANKS", "2"}});
    auto const ended = job.wait();
    test::expect_well(ended);
    for (auto const& one : ended)
      EXPECT_THAT(one.out, AllOf(HasSubstr("[misuse]"), HasSubstr("launch meshpost::"),
                                 HasSubstr("process 1 does '")))
          << role;
  }
}

Role const waits("waits_for_the_late", [] {
  auto options = test::world_options();
  options.deadline = std::chrono::milliseconds(100);
  World world(options);
  world.run(Meet{});
  for (u32 one = 0; one < world.processes(); ++one) {
    late(one, world);
    world.run(Meet{});
  }
  for (u32 one = 0; one < world.processes(); ++one) {  // a late process finds a failed run
    late(one, world);
    u32 const bad = (one + 1) % world.processes() * (world.size() / world.processes());
    print_error([&] { world.run(Refuse{bad}); });
    world.run(Meet{});
  }
});

TEST(JobMeeting, waits_for_processes_that_are_late) {
  test::Job job("waits_for_the_late", 3, {{"MESHPOST_RANKS", "2"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended)
    EXPECT_THAT(one.out, AllOf(HasSubstr("not today"), Not(HasSubstr("deadline"))));
}

// Hosts read and write others' windows between runs: no rank begins before all processes have
// launched.
struct Add {
  Window<u32> all;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = all.local(self);
    if (self.thread() == 0) mine[0] += 1;
  }
};
Role const reads("reads_between_runs", [] {
  World world(test::world_options());
  auto const all = world.window<u32>(1);
  for (u32 run = 0; run < 100; ++run) {
    world.run(Add{all});
    // Process run % count reads all parts, the others read none.
    if (world.process() != run % world.processes()) continue;
    for (u32 rank = 0; rank < world.size(); ++rank) {
      u32 const found = all.read(RankId{rank})[0];
      require(found == run + 1, "what the run has left");
    }
  }
});

TEST(JobMeeting, lets_hosts_read_what_a_run_has_left) {
  test::Job job("reads_between_runs", 2, {{"MESHPOST_RANKS", "3"}});
  test::expect_well(job.wait());
}

Role const news("has_news_now_and_then", [] {
  World world(test::world_options());
  auto const box = world.window<int>(1, Tags{1}, "box");
  u32 const ranks = world.size();
  for (u32 run = 0; run < 120; ++run) {
    bool const some = run % 3 == 0, timed = run % 5 == 0;
    u32 const leaver = run * 7 % ranks, timer = run * 5 % ranks;
    auto const result =
        world.run(Leave{box, some ? leaver : ranks, run + 1, timed ? timer : ranks});
    require(result.unconsumed.size() == (some ? 1 : 0), "unconsumed notifications of this run");
    if (some) {
      auto const& left = result.unconsumed.front();
      require(left.rank == (leaver + 1) % ranks && left.count == run + 1, "whose, and how many");
    }
    require(result.timings.size() == world.device_count(), "timings of all devices");
    for (u32 device = 0; device < world.device_count(); ++device)
      require(result.timings[device].size() ==
                  (timed && timer / world.ranks_per_device() == device ? 1 : 0),
              "a time where one was taken");
  }
});

TEST(JobMeeting, tells_all_processes_what_there_is_to_tell) {
  test::Job job("has_news_now_and_then", 3,
                {{"MESHPOST_RANKS", "2"}, {"MESHPOST_TEST_QUIET", "1"}});
  test::expect_well(job.wait());
}

// Throws at every line, near the end of the run: all processes must go on with the same run.
struct Angry : EventSink {
  void warning(std::string_view) override {}
  void log(unsigned, std::string_view) override { throw std::runtime_error("no room"); }
};
Role const angry("has_a_sink_that_throws", [] {
  World world(test::world_options());
  if (world.process() == 1) set_event_sink(std::make_shared<Angry>());
  u32 failed = 0;
  for (u32 run = 0; run < 60; ++run) {
    try {
      world.run(Say{});
    } catch (Error const& error) {
      ++failed;
      require(std::string(error.what()).find("no room") != std::string::npos, error.what());
    }
    world.run(Meet{});
  }
  if (world.process() == 1) require(failed == 60, "each was heard of");
});

TEST(JobMeeting, stands_what_fails_when_a_run_is_about_to_end) {
  test::Job job("has_a_sink_that_throws", 3, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

// All ranks learn how many of them say so.
struct Count {
  Window<u32> said;
  Communicator all;
  u32 so;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const mine = said.local(self);
    if (self.thread() == 0) mine[0] = so;
    self.all_reduce(all, mine, Sum{});
  }
};

// Runs until a thread of each process has ended, which is in the same run in all of them.
bool run_until_all_have(World& world, Window<u32> const& said, std::atomic<bool> const& ended) {
  RankId const own{world.process() * (world.size() / world.processes())};
  for (u32 round = 0; round < 100; ++round) {
    for (u32 i = 0; i < 100; ++i) world.run(Meet{});
    world.run(Count{said, world.communicator(), ended ? 1u : 0u});
    if (said.read(own)[0] == world.size()) return true;
  }
  return false;
}

Role const crowd("has_two_worlds_in_two_threads", [] {
  World one(test::world_options()), two(test::world_options());
  Window<u32> const said[] = {one.window<u32>(1), two.window<u32>(1)};
  for (auto* const busy : {&one, &two}) {
    std::atomic<bool> ended = false;
    std::thread other([&] {
      for (u32 i = 0; i < 4; ++i) (busy == &one ? two : one).run(Meet{});
      ended = true;
    });
    require(run_until_all_have(*busy, said[busy == &one ? 0 : 1], ended),
            "one that runs on and on lets the other in between");
    other.join();
  }
});

TEST(JobMeeting, lets_several_worlds_share_devices) {
  test::Job job("has_two_worlds_in_two_threads", 2, {{"MESHPOST_RANKS", "2"}});
  test::expect_well(job.wait());
}

}  // namespace
}  // namespace meshpost::meeting
