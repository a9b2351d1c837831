// Notifications are counted by window, tag and rank, and consumed as requested.
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

struct SomeOfMany {  // rank 0 sends `sent` to all ranks, which consume 1, 2, 3, ... of them
  Window<u32> window;
  test::Findings findings;
  u32 takes;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const sent = takes * (takes + 1) / 2;
    if (self.id() == 0)
      for (u32 to = 0; to < self.size(); ++to)
        for (u32 i = 0; i < sent; ++i) self.notify(window, RankId{to}, Tag{0});
    for (u32 k = 1; k <= takes; ++k) self.wait(window, Tag{0}, k, RankId{0});
    findings.add(self, self.test(window, Tag{0}));      // no more are there
    findings.add(self, !self.test(window, Tag{0}, 0));  // a wait for none always succeeds
    self.wait(window, Tag{0}, 0);
  }
};

MESHPOST_FN u32 times(u32 tag, u32 window) { return 1 + (tag + window) % 3; }

struct ManyTags {  // in several windows; consumed backwards
  Window<u32> windows[3];
  u32 tags;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    for (u32 w = 0; w < 3; ++w)
      for (u32 tag = 0; tag < tags; ++tag)
        for (u32 i = 0; i < times(tag, w); ++i) self.notify(windows[w], next, Tag{tag});
    for (u32 w = 3; w-- > 0;)
      for (u32 tag = tags; tag-- > 0;) self.wait(windows[w], Tag{tag}, times(tag, w));
    for (u32 w = 0; w < 3; ++w)
      for (u32 tag = 0; tag < tags; ++tag) findings.add(self, self.test(windows[w], Tag{tag}));
  }
};

struct Testing {  // test() says no before, yes after, and consumes
  Window<u32> window;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    findings.add(self, self.test(window, Tag{5}));
    self.barrier();
    self.notify(window, next, Tag{5});
    self.notify(window, next, Tag{5});
    while (!self.test(window, Tag{5}, 2)) {
    }
    findings.add(self, self.test(window, Tag{5}));
  }
};

struct Everyone {  // one counter, raised by all
  Window<u32> window;
  u32 rounds;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 to = 0; to < self.size(); ++to) self.notify(window, RankId{to}, Tag{0});
      self.wait(window, Tag{0}, self.size());
    }
  }
};

struct LeaveSome {
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0)
      for (u32 i = 0; i < 3; ++i) self.notify(window, RankId{1}, Tag{4});
    if (self.id() == 1) self.wait(window, Tag{4});
  }
};

struct FindNone {
  Window<u32> window;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 tag = 0; tag < 16; ++tag) findings.add(self, self.test(window, Tag{tag}));
  }
};

struct MoreThanACounterHolds {  // 2^31 + 1, but for one of them at once
  Window<u32> window;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 0) return;
    auto const& info = window.info();
    auto* const counter = reinterpret_cast<u32*>(self.state().heap + info.counters) + 3;
    if (self.thread() == 0) memory::add(counter, u32{1} << 31, Order::system);
    self.notify(window, RankId{0}, Tag{3});
    self.wait(window, Tag{3});
  }
};

class Counters : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Counters, test::all_shapes(), test::shape_name);

TEST_P(Counters, give_as_many_as_are_waited_for) {
  auto const findings = test::make_findings(world);
  EXPECT_TRUE(world.run(SomeOfMany{world.window<u32>(0), findings, 12}, launch).unconsumed.empty());
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Counters, of_tags_and_windows_are_separate) {
  u32 const tags = 100;
  auto const findings = test::make_findings(world);
  world.run(ManyTags{{world.window<u32>(0, Tags{tags}), world.window<u32>(1, Tags{tags}),
                      world.window<u32>(0, Tags{tags})},
                     tags,
                     findings},
            launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Counters, are_tested_without_waiting) {
  auto const findings = test::make_findings(world);
  world.run(Testing{world.window<u32>(0), findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Counters, take_notifications_of_all_ranks_at_once) {
  EXPECT_TRUE(world.run(Everyone{world.window<u32>(0), 30}, launch).unconsumed.empty());
}

TEST(Counter, that_takes_more_than_it_holds_is_named_and_not_a_deadlock) {
  World world(test::options(1, test::devices(test::Spread::one_device)));
  auto const inbox = world.window<u32>(0, Tags{8}, "inbox");
  auto const error = test::error_of([&] { world.run(MoreThanACounterHolds{inbox}); });
  EXPECT_TRUE(test::says(error, Kind::kernel_failed,
                         {"wait in", "on rank 0", "2147483649 notifications of tag 3",
                          "window 'inbox'", "not consumed", "2147483647"}));
}

TEST(Counter, unconsumed_notifications_are_reported_with_their_sender) {
  World world(test::options(2));
  test::Listener const listener;
  auto const result = world.run(LeaveSome{world.window<u32>(0, Tags{8}, "inbox")});
  ASSERT_EQ(result.unconsumed.size(), 1u);
  auto const& left = result.unconsumed[0];
  EXPECT_EQ(left.rank, 1u);
  EXPECT_EQ(left.tag.value, 4u);
  EXPECT_EQ(left.count, 2u);
  EXPECT_EQ(left.sender, 0u);
  EXPECT_NE(left.window.find("inbox"), std::string::npos);
  ASSERT_EQ(listener.warnings().size(), 1u);
  EXPECT_NE(
      listener.warnings()[0].find("rank 1 has 2 of tag 4 in window 'inbox', the last from rank 0"),
      std::string::npos)
      << listener.warnings()[0];
}

TEST(Counter, is_zero_at_the_start_of_the_next_run) {
  World world(test::options(2));
  test::Listener const listener;
  auto const window = world.window<u32>(0);
  auto const findings = test::make_findings(world);
  for (int i = 0; i < 3; ++i) {
    world.run(LeaveSome{window});
    world.run(FindNone{window, findings});
  }
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST(Counter, starts_at_zero_in_memory_that_a_freed_window_left) {
  World world(test::options(2));
  test::Listener const listener;
  auto const findings = test::make_findings(world);
  for (int i = 0; i < 10; ++i) {
    auto const window = world.window<u32>(1000);
    world.run(LeaveSome{window});
    EXPECT_EQ(window.read(RankId{0}), std::vector<u32>(1000, 0));
    window.write(RankId{0}, 0, std::vector<u32>(1000, 17));
    world.free(window);
    auto const other = world.window<u32>(10);
    world.run(FindNone{other, findings});
    world.free(other);
  }
  EXPECT_EQ(test::total(world, findings), 0u);
}

}  // namespace
}  // namespace meshpost
