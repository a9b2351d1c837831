// Long puts and gets between nodes, to devices whose memory no engine can write. They go by way of
// the receiver's pinned memory.
#include <meshpost/meshpost.hpp>

#include <random>
#include <thread>

#include "rma/jobs/reaching.hpp"
#include "support/boxed.hpp"
#include "support/job.hpp"

namespace meshpost {
namespace {

using test::Role;
using test::say;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr u32 region = 150'000;  // words: two slots

// Each process is a node, independent of the nodes of other tests.
test::Variables node_with(u32 process, char const* devices) {
  return {{"MESHPOST_NODE", std::to_string(process)}, {"MESHPOST_DEVICES", devices}};
}

// Roles of writes.cpp.
TEST(JobStagedCpuOnly, puts_and_gets_of_all_sizes_bring_what_one_after_the_other_would) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a copy may store over what an earlier command stores at the same time";
#endif
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  auto const seed = std::to_string(std::random_device{}());
  SCOPED_TRACE("MESHPOST_TEST_SEED=" + seed);
  for (std::vector<char const*> const& devices :
       {std::vector{"boxed:0", "boxed:0"}, {"boxed:0,1", "cpu:1", "none", "boxed:0,cpu:1"}}) {
    test::Job job(
        "sizes", static_cast<u32>(devices.size()),
        {{"MESHPOST_RANKS", devices.size() == 2 ? "2" : "1"}, {"MESHPOST_TEST_SEED", seed}},
        [&](u32 process) { return node_with(process, devices[process]); });
    test::expect_well(job.wait());
    test::Job users(
        "sizes", static_cast<u32>(devices.size()),
        {{"MESHPOST_RANKS", "1"}, {"MESHPOST_TEST_SEED", seed}, {"MESHPOST_TEST_USERS", "1"}},
        [&](u32 process) { return node_with(process, devices[process]); });
    test::expect_well(users.wait());
  }
}

TEST(JobStagedCpuOnly, no_put_of_a_run_that_failed_comes_into_the_next) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("flood", 2, {{"MESHPOST_RANKS", "1"}, {"MESHPOST_TEST_RUNS", "3"}},
                [](u32 process) { return node_with(process, "boxed:0"); });
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("enough"));
}

// Puts without end.
struct Endless {
  Window<u32> inbox, source;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    for (;;) self.put(inbox.at(next, 0), source.local(self).subspan(0, region));
  }
};

Role const endless_puts("endless_puts", [] {
  test::register_boxed();
  test::register_reaching();
  World world(test::world_options());
  auto const inbox = world.window<u32>(region, Tags{1}, "inbox"),
             source = world.window<u32>(region, Tags{1}, "source");
  say("begins");
  test::print_error([&] { world.run(Endless{inbox, source}); });
});

TEST(JobStagedTroubleCpuOnly, loss_of_a_process_amid_long_puts_is_named) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  std::mt19937 random(std::random_device{}());
  for (u32 const victim : {0, 1}) {
    auto const after = std::chrono::milliseconds(random() % 40);
    SCOPED_TRACE(testing::Message() << "killed after " << after.count() << " ms");
    test::Job job("endless_puts", 3, {{"MESHPOST_RANKS", "1"}},
                  [](u32 process) { return node_with(process, "boxed:0"); });
    for (u32 process = 0; process < 3; ++process) job.wait_for(process, "begins");
    std::this_thread::sleep_for(after);
    job.kill(victim);
    auto const ended = job.wait();
    for (u32 process = 0; process < 3; ++process) {
      if (process == victim) continue;
      EXPECT_TRUE(ended[process].well()) << ended[process].out;
      EXPECT_THAT(ended[process].out, AllOf(HasSubstr("[peer lost]"),
                                            HasSubstr("process " + std::to_string(victim) + " (")));
    }
  }
}

// Puts to a rank that does nothing: many times as many as the receiver has slots.
struct Unheeded {
  Window<u32> inbox, source, words;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const other{1 - self.id()};
    auto const mine = source.local(self);
    if (self.id() == 0) {
      for (u32 put = 0; put < 100; ++put) {
        for (u32 i = 0; i < region; ++i) mine[i] = put * region + i;
        self.put(inbox.at(other, 0), mine.subspan(0, region));
        self.flush(inbox);
      }
      self.put_value(words.at(other, 0), 1);
      self.notify(inbox, other, Tag{0});
    } else {
      self.wait_until(words.local(self).subspan(0, 1), Compare::equal, 1);
      self.wait(inbox, Tag{0});
      auto const in = inbox.local(self);
      for (u32 i = 0; i < region; ++i)
        if (in[i] != 99 * region + i) self.fail("not the last put's");
    }
  }
};

Role const unheeded("unheeded", [] {
  test::register_boxed();
  test::register_reaching();
  try {
    World world(test::world_options());
    auto const inbox = world.window<u32>(region, Tags{1}, "inbox"),
               source = world.window<u32>(region, Tags{1}, "source"),
               words = world.window<u32>(1, Tags{1}, "words");
    for (u32 run = 0; run < 2; ++run) world.run(Unheeded{inbox, source, words});
    std::printf("all is well\n");
  } catch (Error const& error) {
    std::printf("error: %s\n", error.what());
  }
});

// The two processes, and the engine of one of them.
std::vector<test::Ended> unheeded_with(u32 process, std::string const& engine) {
  test::Variables all{{"MESHPOST_RANKS", "1"}};
  if (!engine.empty()) all["MESHPOST_DEADLINE"] = all["MESHPOST_PEER_DEADLINE"] = "1";
  test::Job job("unheeded", 2, all, [&](u32 number) {
    auto own = node_with(number, "boxed:0");
    if (number == process && !engine.empty()) own["MESHPOST_NET"] = engine;
    else if (!engine.empty()) own["MESHPOST_NET"] = "ofi:tcp";
    return own;
  });
  return job.wait();
}

TEST(JobStagedCpuOnly, long_puts_without_notifications_need_nobody_at_the_target) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  for (auto const& one : unheeded_with(0, "")) EXPECT_THAT(one.out, HasSubstr("all is well"));
}

TEST(JobStagedTroubleCpuOnly, bytes_that_are_changed_on_their_way_are_not_taken_for_right_ones) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  // Three of four operations of the writer that the fault may change are written bytes.
  u32 found = 0;
  for (u32 seed = std::random_device{}() % 1'000'000, tries = 0; found == 0 && tries < 10; ++tries)
    for (auto const& one :
         unheeded_with(0, "faulty:flip:" + std::to_string(seed + tries) + ":ofi:tcp")) {
      EXPECT_THAT(one.out, AllOf(HasSubstr("error: "), HasSubstr("[peer lost]")));
      if (one.out.find("bytes that were written to offset") != std::string::npos) ++found;
    }
  EXPECT_EQ(found, 2u);
}

TEST(JobStagedTroubleCpuOnly, what_comes_twice_or_not_at_all_ends_both_processes) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  auto const seed = std::random_device{}() % 1'000'000;
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (auto const* const fault : {"duplicate", "drop", "lose"})
    for (auto const& one :
         unheeded_with(1, "faulty:" + std::string(fault) + ":" + std::to_string(seed) + ":ofi:tcp"))
      EXPECT_THAT(one.out, AllOf(HasSubstr("error: "),
                                 AnyOf(HasSubstr("[peer lost]"), HasSubstr("[deadline]"))))
          << fault;
}

}  // namespace
}  // namespace meshpost
