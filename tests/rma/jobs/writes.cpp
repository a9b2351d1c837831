// Puts and gets of all sizes between processes. Between nodes short ones go in messages. Long ones
// are written directly into the window, in an order of their own. If no engine can do that, they go
// by way of the receiver's pinned memory (staged.cpp).
#include <meshpost/meshpost.hpp>

#include <random>

#include "rma/jobs/reaching.hpp"
#include "support/boxed.hpp"
#include "support/job.hpp"
#include "support/users.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;
using test::Role;
using testing::HasSubstr;

constexpr u32 written_region =
    150'000;  // words of a window for each sender: several pieces of a write

// Puts of a rank to another in a round, one after the other. They may overlap. Both ranks compute
// them.
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
      case 1: return 4040 + x / 5 % 50;    // near the limit from message to write
      case 2: return 65'520 + x / 5 % 40;  // near a piece of a write
      case 3: return 100 + x / 5 % 4000;
      default: return 1 + x / 5 % written_region;
    }
  }
  MESHPOST_FN u32 offset(u32 from, u32 to, u32 round, u32 put, u32 size) const {
    return number(from, to, round, 2 * put + 2) % (written_region - size + 1);
  }
};

struct Sizes {
  Window<u32> inbox, source, sent, expected;
  Draw draw;
  u32 rounds;

  MESHPOST_FN u32 word(u32 from, u32 round, u32 put, u32 i) const {
    return (from * 64 + round) * 64 + put + i * 7919;
  }
  // Does the puts of one round in its own memory, by one thread: with several, an earlier put could
  // overwrite a later one.
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
          u32 const offset = me * written_region + draw.offset(me, to, round, put, size);
          for (u32 i = 0; i < size; ++i)
            mine[i] = word(me, round, put, i);  // overwrites the source of the previous put
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
        auto const right = wanted.subspan(u64{from} * written_region, written_region);
        replay(self, right, from, me, round);
        for (u32 i = 0; i < written_region; ++i)
          if (in[u64{from} * written_region + i] != right[i])
            self.fail("a put brought something else");
      }
      self.barrier();
      for (u32 step = 1; step < n; ++step) {
        u32 const to = (me + step) % n;
        auto const there = out.subspan(u64{to} * written_region, written_region);
        replay(self, there, me, to, round);
        u32 const size = draw.size(to, me, round, 7);
        u32 const offset = draw.offset(to, me, round, 7, size);
        self.get(mine.subspan(0, size), inbox.at(RankId{to}, me * written_region + offset));
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
  test::register_reaching();
  World world(test::world_options());
  u32 const all = world.size() * written_region;
  auto const tags = Tags{world.size()};
  test::UserMemory memory(world);
  bool const users = std::getenv("MESHPOST_TEST_USERS") != nullptr;
  auto const inbox = users ? memory.window<u32>(all, tags, "inbox")
                           : world.window<u32>(all, tags, "inbox"),
             source = users ? memory.window<u32>(written_region, Tags{1}, "source")
                            : world.window<u32>(written_region, Tags{1}, "source"),
             sent = world.window<u32>(all, Tags{1}, "sent"),
             expected = world.window<u32>(all, Tags{1}, "expected");
  world.run(Sizes{inbox, source, sent, expected, {seed_of_job()}, 6});
});

TEST(Job, puts_and_gets_of_all_sizes_bring_what_one_after_the_other_would) {
  for (u32 const processes : {2, 3}) {
    auto const seed = std::to_string(std::random_device{}());
    SCOPED_TRACE("MESHPOST_TEST_SEED=" + seed);
    test::Variables variables{{"MESHPOST_RANKS", processes == 2 ? "2" : "1"},
                              {"MESHPOST_TEST_SEED", seed}};
    test::Job job("sizes", processes, variables);
    test::expect_well(job.wait());
    variables["MESHPOST_TEST_USERS"] = "1";
    test::Job users("sizes", processes, variables);
    test::expect_well(users.wait());
  }
}

// Puts without end, until a rank fails.
struct Flood {
  Window<u32> inbox, source;
  u32 most;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), half = written_region / 2;
    auto const mine = source.local(self);
    for (u32 i = 0; i < written_region; ++i) mine[i] = 0xbad;
    self.barrier();
    for (u32 put = 0;; ++put) {
      if (self.id() + 1 == n && put == most) self.fail("enough");
      self.put(inbox.at(RankId{(self.id() + 1) % n}, put % 2 * half), mine.subspan(0, half));
    }
  }
};
// No rank puts anything for a while.
struct Still {
  Window<u32> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const in = inbox.local(self);
    for (u32 i = 0; i < written_region; ++i) in[i] = 7;
    for (u32 i = 0; i < 20; ++i) self.barrier();
    for (u32 i = 0; i < written_region; ++i)
      if (in[i] != 7) self.fail("a put of an earlier run has come");
  }
};

Role const flood("flood", [] {
  test::register_boxed();
  test::register_reaching();
  World world(test::world_options());
  auto const inbox = world.window<u32>(written_region, Tags{1}, "inbox"),
             source = world.window<u32>(written_region, Tags{1}, "source");
  char const* const runs = std::getenv("MESHPOST_TEST_RUNS");
  for (u32 run = 0; run < (runs ? std::stoul(runs) : 5); ++run) {
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

}  // namespace
}  // namespace meshpost
