// Puts and gets of all sizes between processes: between nodes short ones go in messages, long ones
// are written straight into the window, in an order of their own; or where no engine can do that,
// by way of the receiver's pinned memory.
#include <meshpost/meshpost.hpp>

#include <random>
#include <thread>

#include "support/boxed.hpp"
#include "support/job.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;
using test::Role;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr u32 region = 100'000;  // words of a window for each sender: several pieces of a write

// What a rank sends another in a round, one after the other: over each other as it comes. Both
// compute it.
struct Draw {
  u64 seed;
  MESHPOST_FN u32 number(u32 from, u32 to, u32 round, u32 what) const {
    return static_cast<u32>(mixed(seed + from * 1000 + to, round * 1000 + what) >> 8);
  }
  MESHPOST_FN u32 puts(u32 from, u32 to, u32 round) const {
    return 1 + number(from, to, round, 0) % 5;
  }
  MESHPOST_FN u32 size(u32 from, u32 to, u32 round, u32 put) const {
    u32 const x = number(from, to, round, 2 * put + 1);
    switch (x % 5) {
      case 0: return 1 + x / 5 % 32;
      case 1: return 4040 + x / 5 % 50;    // where writes begin
      case 2: return 65'520 + x / 5 % 40;  // a piece of a write
      case 3: return 100 + x / 5 % 4000;
      default: return 1 + x / 5 % region;
    }
  }
  MESHPOST_FN u32 offset(u32 from, u32 to, u32 round, u32 put, u32 size) const {
    return number(from, to, round, 2 * put + 2) % (region - size + 1);
  }
};

struct Sizes {
  Window<u32> inbox, source, sent, expected;
  Draw draw;
  u32 rounds;

  MESHPOST_FN u32 word(u32 from, u32 round, u32 put, u32 i) const {
    return (from * 64 + round) * 64 + put + i * 7919;
  }
  // Does one round's puts in memory of one's own: one thread, for an earlier put of another's would
  // come over a later one.
  MESHPOST_FN void replay(Rank& self, LocalSpan<u32> memory, u32 from, u32 to, u32 round) const {
    self.sync();
    for (u32 put = 0; self.thread() == 0 && put < draw.puts(from, to, round); ++put) {
      u32 const size = draw.size(from, to, round, put);
      u32 const offset = draw.offset(from, to, round, put, size);
      for (u32 i = 0; i < size; ++i) memory[offset + i] = word(from, round, put, i);
    }
    self.sync();
  }
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const me = self.id(), n = self.size();
    auto const mine = source.local(self), in = inbox.local(self);
    auto const out = sent.local(self), wanted = expected.local(self);
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 step = 1; step < n; ++step) {
        u32 const to = (me + step) % n, puts = draw.puts(me, to, round);
        bool const with_last = draw.number(me, to, round, 999) % 2 != 0;
        for (u32 put = 0; put < puts; ++put) {
          u32 const size = draw.size(me, to, round, put);
          u32 const offset = me * region + draw.offset(me, to, round, put, size);
          for (u32 i = 0; i < size; ++i) mine[i] = word(me, round, put, i);  // over the last one's
          auto const target = inbox.at(RankId{to}, offset);
          if (with_last && put + 1 == puts) self.put_notify(target, mine.subspan(0, size), Tag{me});
          else self.put(target, mine.subspan(0, size));
          self.flush(inbox);
        }
        if (!with_last) self.notify(inbox, RankId{to}, Tag{me});
      }
      for (u32 step = 1; step < n; ++step) {
        u32 const from = (me + n - step) % n;
        self.wait(inbox, Tag{from});
        auto const right = wanted.subspan(u64{from} * region, region);
        replay(self, right, from, me, round);
        for (u32 i = 0; i < region; ++i)
          if (in[u64{from} * region + i] != right[i]) self.fail("a put brought something else");
      }
      self.barrier();
      for (u32 step = 1; step < n; ++step) {
        u32 const to = (me + step) % n;
        auto const there = out.subspan(u64{to} * region, region);
        replay(self, there, me, to, round);
        u32 const size = draw.size(to, me, round, 7);
        u32 const offset = draw.offset(to, me, round, 7, size);
        self.get(mine.subspan(0, size), inbox.at(RankId{to}, me * region + offset));
        self.flush(inbox);
        for (u32 i = 0; i < size; ++i)
          if (mine[i] != there[offset + i]) self.fail("a get brought something else");
      }
      self.barrier();
    }
  }
};

u64 seed_of_job() {
  char const* const text = std::getenv("MESHPOST_TEST_SEED");
  return text ? std::stoull(text) : 1;
}

Role const sizes("sizes", [] {
  test::register_boxed();
  World world(test::world_options());
  u32 const all = world.size() * region;
  auto const tags = Tags{world.size()};
  auto const inbox = world.window<u32>(all, tags, "inbox"),
             source = world.window<u32>(region, Tags{1}, "source"),
             sent = world.window<u32>(all, Tags{1}, "sent"),
             expected = world.window<u32>(all, Tags{1}, "expected");
  world.run(Sizes{inbox, source, sent, expected, {seed_of_job()}, 6});
});

TEST(Job, puts_and_gets_of_all_sizes_bring_what_one_after_the_other_would) {
  for (u32 const processes : {2, 3}) {
    auto const seed = std::to_string(std::random_device{}());
    SCOPED_TRACE("MESHPOST_TEST_SEED=" + seed);
    test::Job job("sizes", processes,
                  {{"MESHPOST_RANKS", processes == 2 ? "2" : "1"}, {"MESHPOST_TEST_SEED", seed}});
    test::expect_well(job.wait());
  }
}

// Each process a node, whatever the nodes of other tests.
test::Variables node_with(u32 process, char const* devices) {
  return {{"MESHPOST_NODE", std::to_string(process)}, {"MESHPOST_DEVICES", devices}};
}

// Devices that no engine can write to.
TEST(JobStagedCpuOnly, puts_and_gets_of_all_sizes_bring_what_one_after_the_other_would) {
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
  }
}

// Puts without end, until a rank fails.
struct Flood {
  Window<u32> inbox, source;
  u32 most;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), half = region / 2;
    auto const mine = source.local(self);
    for (u32 i = 0; i < region; ++i) mine[i] = 0xbad;
    self.barrier();
    for (u32 put = 0;; ++put) {
      if (self.id() + 1 == n && put == most) self.fail("enough");
      self.put(inbox.at(RankId{(self.id() + 1) % n}, put % 2 * half), mine.subspan(0, half));
    }
  }
};
// Nobody puts anything, for a while.
struct Still {
  Window<u32> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const in = inbox.local(self);
    for (u32 i = 0; i < region; ++i) in[i] = 7;
    for (u32 i = 0; i < 20; ++i) self.barrier();
    for (u32 i = 0; i < region; ++i)
      if (in[i] != 7) self.fail("a put of an earlier run has come");
  }
};

Role const flood("flood", [] {
  test::register_boxed();
  World world(test::world_options());
  auto const inbox = world.window<u32>(region, Tags{1}, "inbox"),
             source = world.window<u32>(region, Tags{1}, "source");
  for (u32 run = 0; run < 5; ++run) {
    test::print_error([&] { world.run(Flood{inbox, source, run * 5}); });
    world.run(Still{inbox});
  }
});

TEST(JobFailure, no_put_of_a_run_that_failed_comes_into_the_next) {
  test::Job job("flood", 2, {{"MESHPOST_RANKS", "2"}});
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("enough"));
}

TEST(JobStagedCpuOnly, no_put_of_a_run_that_failed_comes_into_the_next) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  test::Job job("flood", 2, {{"MESHPOST_RANKS", "2"}},
                [](u32 process) { return node_with(process, "boxed:0"); });
  auto const ended = job.wait();
  test::expect_well(ended);
  for (auto const& one : ended) EXPECT_THAT(one.out, HasSubstr("enough"));
}

Role const endless_flood("endless_flood", [] {
  test::register_boxed();
  World world(test::world_options());
  auto const inbox = world.window<u32>(region, Tags{1}, "inbox"),
             source = world.window<u32>(region, Tags{1}, "source");
  std::printf("begins\n");
  std::fflush(stdout);
  test::print_error([&] { world.run(Flood{inbox, source, ~u32{0}}); });
});

TEST(JobStagedTroubleCpuOnly, loss_of_a_process_amid_long_puts_is_named) {
  if (!MESHPOST_TEST_NETWORK) GTEST_SKIP() << "needs libfabric";
  std::mt19937 random(std::random_device{}());
  for (u32 const victim : {0, 1}) {
    auto const after = std::chrono::milliseconds(random() % 40);
    SCOPED_TRACE(testing::Message() << "killed after " << after.count() << " ms");
    test::Job job("endless_flood", 3, {{"MESHPOST_RANKS", "1"}},
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

// What a rank that does nothing is sent: many times what the receiver has slots for.
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
  if (!engine.empty()) all["MESHPOST_DEADLINE"] = "1";
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
  // Of what can be changed at the writer, three in four are written bytes.
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
