// Messages of a World that take lanes, and the fate of messages for which no rank waits.
#include <array>
#include <atomic>

#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

// Messages of two words that a lane holds: four packets each.
constexpr u32 places = 1024 / 4;

WorldOptions with_lanes(u32 ranks, u32 lanes = 4, char const* devices = "cpu:2") {
  auto wanted = test::options(ranks, devices);
  wanted.lanes = lanes;
  return wanted;
}

// Counts how often a step of the protocols is reached while it lives.
class Counted {
 public:
  Counted() {
    hooks::install([this](hooks::Step step, unsigned) {
      ++counts_[static_cast<u32>(step)];
      return hooks::Action::proceed;
    });
  }
  ~Counted() { hooks::install(nullptr); }
  Counted(Counted const&) = delete;
  Counted& operator=(Counted const&) = delete;
  u32 of(hooks::Step step) const { return counts_[static_cast<u32>(step)]; }

 private:
  std::array<std::atomic<u32>, static_cast<u32>(hooks::Step::count)> counts_{};
};

// Messages of all ranks to rank 0, which polls only after all are sent.
struct ToOne {
  Window<u32> inbox;  // [sender][each]
  u32 each, elements;
  test::Findings findings;
  void operator()(Rank& self) const {
    u32 const me = self.id();
    auto const mine = inbox.local(self);
    auto const out = mine.subspan(u64{self.size()} * each * elements);
    self.each(out.size(), [&](u64 i) { out[i] = static_cast<u32>(test::mixed(me, i)); });
    self.sync();
    if (me != 0)
      for (u32 k = 0; k < each; ++k)
        self.put_notify(inbox.at(RankId{0}, (u64{me} * each + k) * elements),
                        out.subspan(u64{k} * elements, elements), Tag{me});
    self.barrier();
    if (me != 0) return;
    for (u32 from = 1; from < self.size(); ++from) {
      self.wait(inbox, Tag{from}, each, RankId{from});
      for (u64 i = 0; i < u64{each} * elements; ++i)
        findings.add(
            self, mine[u64{from} * each * elements + i] != static_cast<u32>(test::mixed(from, i)));
    }
  }
};

u32 send_to_one(World& world, u32 each, u32 elements) {
  u64 const all = u64{world.size()} * each * elements + u64{each} * elements;
  auto const inbox = world.window<u32>(all, Tags{world.size()}, "inbox");
  auto const findings = test::make_findings(world);
  Counted const counted;
  world.run(ToOne{inbox, each, elements, findings});
  EXPECT_EQ(test::total(world, findings), 0);
  return counted.of(hooks::Step::put_copy);
}

TEST(Lanes, carry_short_messages_and_leave_long_ones_direct) {
  World world(with_lanes(2));
  EXPECT_EQ(send_to_one(world, 1, 256), 0);
  EXPECT_EQ(send_to_one(world, 1, 257), 3);
  EXPECT_EQ(send_to_one(world, places, 2), 0);
}

TEST(Lanes, that_are_full_or_all_taken_leave_messages_direct) {
  World world(with_lanes(3, 2));
  EXPECT_EQ(send_to_one(world, places + 5, 2), 2 * 5 + 3 * (places + 5));
}

TEST(Lanes, more_than_a_rank_may_have_are_refused) {
  EXPECT_TRUE(test::says(test::error_of([] { World const world(with_lanes(2, 1025)); }),
                         Kind::bad_argument, {"1025 lanes", "at most 1024"}));
}

struct Leaves {
  Window<u32> inbox;
  bool fails;
  void operator()(Rank& self) const {
    auto const out = inbox.local(self).subspan(1, 1);
    out[0] = 4711;
    if (self.id() == 1) self.put_notify(inbox.at(RankId{0}), out, Tag{0});
    self.barrier();
    if (fails && self.id() == 0) self.fail("as asked");
  }
};

TEST(Lanes, are_emptied_at_the_end_of_a_run_and_after_one_that_failed) {
  test::Listener const quiet;  // of the remaining messages
  World world(with_lanes(1));
  auto const inbox = world.window<u32>(2, Tags{1}, "inbox");
  auto const left = world.run(Leaves{inbox, false}).unconsumed;
  EXPECT_EQ(inbox.read(RankId{0})[0], 4711);
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].sender.value, 1);
  for (u32 round = 0; round < 3; ++round) {
    EXPECT_THROW(world.run(Leaves{inbox, true}), Error);
    EXPECT_EQ(send_to_one(world, places, 2), 0);
  }
}

}  // namespace
}  // namespace meshpost
