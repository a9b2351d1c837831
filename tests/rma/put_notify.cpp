// Bytes and their notifications reach the right rank, in every shape of world.
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

struct RingOfPuts {
  Window<i32> inbox;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n}, previous{(self.id() + n - 1) % n};
    auto const mine = inbox.local(self);
    if (self.thread() == 0) mine[1] = static_cast<i32>(100 + self.id());
    self.put_notify(inbox.at(next), mine.subspan(1, 1), Tag{7});
    self.wait(inbox, Tag{7}, 1, previous);
  }
};

// Each rank puts `chunk` numbers to each rank, itself included, in every round.
struct Everybody {
  Window<u32> inbox, source;
  u32 chunk, rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    auto const mine = inbox.local(self);
    auto const out = source.local(self);
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 to = 0; to < n; ++to) {
        self.each(chunk, [&](u64 i) {
          out[to * chunk + i] = static_cast<u32>(mixed(self.id(), to, round, i));
        });
        self.put_notify(inbox.at(RankId{to}, u64{self.id()} * chunk),
                        out.subspan(u64{to} * chunk, chunk), Tag{3});
      }
      self.wait(inbox, Tag{3}, n);
      for (u32 from = 0; from < n; ++from)
        self.each(chunk, [&](u64 i) {
          findings.add(
              self, mine[from * chunk + i] != static_cast<u32>(mixed(from, self.id(), round, i)));
        });
      self.barrier();  // no rank overwrites words that are still being read
    }
  }
};

struct PutsThenOneNotify {
  Window<u32> inbox;
  u32 puts;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    RankId const next{(self.id() + 1) % n};
    u32 const previous = (self.id() + n - 1) % n;
    auto const mine = inbox.local(self);
    self.each(puts, [&](u64 i) { mine[puts + i] = static_cast<u32>(mixed(self.id(), i)); });
    for (u32 i = 0; i < puts; ++i) self.put(inbox.at(next, i), mine.subspan(puts + i, 1));
    self.notify(inbox, next, Tag{0});
    self.wait(inbox, Tag{0});
    self.each(puts,
              [&](u64 i) { findings.add(self, mine[i] != static_cast<u32>(mixed(previous, i))); });
  }
};

struct CountsElsewhere {
  Window<u32> data;
  Window<u64> counters;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = data.local(self);
    if (self.thread() == 0) mine[1] = self.id() + 1;
    self.put_notify(data.at(next), mine.subspan(1, 1), counters, Tag{2});
    self.wait(counters, Tag{2});
  }
};

struct NothingAtAll {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    self.put(window.at(next), LocalSpan<u32 const>{});
    self.put_notify(window.at(next, 4), window.local(self).subspan(4, 0),
                    Tag{0});  // at the end, but inside
    self.put_notify(window.at(next), LocalSpan<u32 const>{}, Tag{0});
    self.wait(window, Tag{0}, 2);
    self.get(LocalSpan<u32>{}, window.at(next, 4));
  }
};

struct ThroughSubspans {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = window.local(self);
    if (self.thread() == 0) mine[0] = self.id();
    auto const middle = window.at(next, 1).subspan(1, 6).subspan(2, 3);  // elements 4 to 6
    self.put_notify(middle, mine.subspan(0, 1), Tag{0});
    self.put_notify(middle.subspan(2), mine.subspan(0).subspan(0, 1), Tag{0});
    self.wait(window, Tag{0}, 2);
  }
};

class PutNotify : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, PutNotify, test::all_shapes(), test::shape_name);

TEST_P(PutNotify, passes_a_number_round_a_ring) {
  auto const inbox = world.window<i32>(2, Tags{8}, "inbox");
  auto const result = world.run(RingOfPuts{inbox}, launch);
  EXPECT_TRUE(result.unconsumed.empty());
  EXPECT_GT(result.seconds, 0);
  u32 const n = world.size();
  for (u32 r = 0; r < n; ++r)
    EXPECT_EQ(inbox.read(RankId{r})[0], static_cast<i32>(100 + (r + n - 1) % n));
}

TEST_P(PutNotify, carries_everybodys_numbers_to_everybody) {
  u32 const chunk = 37;
  u64 const size = u64{world.size()} * chunk;
  auto const findings = test::make_findings(world);
  world.run(Everybody{world.window<u32>(size), world.window<u32>(size), chunk, 5, findings},
            launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(PutNotify, orders_earlier_puts_before_a_notify) {
  u32 const puts = 50;
  auto const findings = test::make_findings(world);
  world.run(PutsThenOneNotify{world.window<u32>(2 * puts), puts, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(PutNotify, may_count_in_another_window) {
  auto const data = world.window<u32>(2, Tags{0});
  world.run(CountsElsewhere{data, world.window<u64>(0, Tags{3})}, launch);
  u32 const n = world.size();
  for (u32 r = 0; r < n; ++r) EXPECT_EQ(data.read(RankId{r})[0], (r + n - 1) % n + 1);
}

TEST_P(PutNotify, of_nothing_only_notifies) {
  auto const window = world.window<u32>(4);
  world.run(NothingAtAll{window}, launch);
  for (u32 r = 0; r < world.size(); ++r) EXPECT_EQ(window.read(RankId{r}), std::vector<u32>(4, 0));
}

TEST_P(PutNotify, reaches_the_elements_that_a_subspan_names) {
  auto const window = world.window<u32>(8);
  world.run(ThroughSubspans{window}, launch);
  u32 const n = world.size();
  for (u32 r = 0; r < n; ++r) {
    u32 const from = (r + n - 1) % n;
    EXPECT_EQ(window.read(RankId{r}), (std::vector<u32>{r, 0, 0, 0, from, 0, from, 0}));
  }
}

}  // namespace
}  // namespace meshpost
