// The checked mode: bytes arrive only when they are consumed, and the error names a rank that
// breaks the delivery rule.
#include "support/errors.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

WorldOptions checked(u32 ranks = 3, char const* devices = "cpu:1") {
  auto wanted = test::options(ranks, devices);
  wanted.check_delivery = true;
  return wanted;
}

enum class Scenario {
  well,
  read_early,
  later_notification,
  other_tag,
  overwrite_by_another,
  overwrite_by_store,
  overwrite_own_announced,
  overwrite_own_unannounced,
  get_early,
  forward_early,
  forward_after_consumption,
  get_after_being_told,
  end_without_consuming,
  chunks
};

struct Play {
  Scenario scenario;
  Window<u32> window, copy;  // 8 elements each
  Window<u32> seen;          // read by rank 1
  void operator()(Rank& self) const {
    switch (self.id()) {
      case 0: return sender(self);
      case 1: return target(self);
      default: return third(self);
    }
  }
  void sender(Rank& self) const {
    auto const out = copy.local(self);
    for (u32 i = 0; i < 8; ++i) out[i] = 10 + i;
    RankId const one{1};
    if (scenario == Scenario::later_notification) self.put(window.at(one), out);
    else if (scenario == Scenario::chunks)
      for (u32 i = 0; i < 8; ++i) self.put_notify(window.at(one, i), out.subspan(i, 1), Tag{0});
    else if (scenario != Scenario::overwrite_own_unannounced)
      self.put_notify(window.at(one), out, Tag{0});
    if (scenario == Scenario::later_notification) self.notify(window, one, Tag{1});
    if (scenario == Scenario::other_tag)
      self.put_notify(window.at(one, 0), out.subspan(0, 0), Tag{1});
    if (scenario == Scenario::overwrite_own_announced)
      self.put(window.at(one, 3), out.subspan(0, 1));
    if (scenario == Scenario::overwrite_own_unannounced) {
      self.put(window.at(one), out.subspan(0, 4));
      self.put(window.at(one, 2), out.subspan(6, 2));
      self.notify(window, one, Tag{0});
    }
    self.notify(copy, one, Tag{2});  // announces its put in another way
    self.notify(copy, RankId{2}, Tag{2});
  }
  void target(Rank& self) const {
    auto const mine = window.local(self);
    auto const out = seen.local(self);
    if (scenario == Scenario::overwrite_own_announced)
      self.wait(copy, Tag{2});  // not before its second put
    auto const look = [&] {
      for (u32 i = 0; i < 8; ++i) out[i] = mine[i];
    };
    switch (scenario) {
      case Scenario::read_early:
        while (self.state().tags.world == 0) {
        }
        self.barrier();  // delivers nothing
        look();
        self.wait(window, Tag{0});
        break;
      case Scenario::later_notification: self.wait(window, Tag{1}); break;
      case Scenario::other_tag: self.wait(window, Tag{1}); break;  // a later one from the same rank
      case Scenario::overwrite_by_store:
        self.barrier();
        mine[5] = 3;
        self.wait(window, Tag{0});
        break;
      case Scenario::overwrite_by_another: self.wait(copy, Tag{3}); break;
      case Scenario::chunks: self.wait(window, Tag{0}, 8); break;
      case Scenario::forward_early:
        self.barrier();
        self.put_notify(copy.at(RankId{2}), mine, Tag{4});
        break;
      case Scenario::forward_after_consumption:
        self.wait(window, Tag{0});
        self.put_notify(copy.at(RankId{2}), mine, Tag{4});
        break;
      case Scenario::get_after_being_told:
        self.wait(window, Tag{0});
        self.notify(copy, RankId{2}, Tag{5});
        break;
      case Scenario::end_without_consuming: break;
      case Scenario::get_early: self.wait(copy, Tag{5}); break;
      default: self.wait(window, Tag{0});
    }
    if (scenario != Scenario::read_early && scenario != Scenario::end_without_consuming) look();
    if (scenario == Scenario::end_without_consuming) return;
    if (scenario != Scenario::get_early && scenario != Scenario::overwrite_by_another)
      self.wait(copy, Tag{2});
  }
  void third(Rank& self) const {
    auto const here = copy.local(self);
    if (scenario == Scenario::overwrite_by_another) {
      self.wait(copy, Tag{2});
      self.put(window.at(RankId{1}, 7), here.subspan(0, 1));
    } else if (scenario == Scenario::get_early) {
      self.wait(copy, Tag{2});
      self.get(here, window.at(RankId{1}));
    } else if (scenario == Scenario::get_after_being_told) {
      self.wait(copy, Tag{5});
      self.get(here, window.at(RankId{1}));
      self.wait(copy, Tag{2});
    } else if (scenario == Scenario::forward_after_consumption) {
      self.wait(copy, Tag{4});
      self.wait(copy, Tag{2});
    } else if (scenario != Scenario::end_without_consuming) {
      self.wait(copy, Tag{2});
    }
  }
};

// Cases with a barrier: ranks 0 and 2 enter it after their operations.
struct WithBarrier {
  Play play;
  void operator()(Rank& self) const {
    play(self);
    if (self.id() != 1) self.barrier();
  }
};

class Delivery : public testing::Test {
 protected:
  World world{checked()};
  Window<u32> window = world.window<u32>(8, Tags{8}, "board"),
              copy = world.window<u32>(8, Tags{8}, "copy");
  Window<u32> seen = world.window<u32>(8, Tags{0}, "seen");
  test::Listener listener;
  std::vector<u32> const whole{10, 11, 12, 13, 14, 15, 16, 17};

  Play play(Scenario scenario) { return {scenario, window, copy, seen}; }
  std::vector<u32> seen_by_target() { return seen.read(RankId{1}); }
};

TEST_F(Delivery, happens_when_the_notification_is_consumed) {
  world.run(play(Scenario::well));
  EXPECT_EQ(seen_by_target(), whole);
}

TEST_F(Delivery, of_a_put_happens_with_a_later_notification) {
  world.run(play(Scenario::later_notification));
  EXPECT_EQ(seen_by_target(), whole);
}

TEST_F(Delivery, happens_with_a_later_notification_of_another_tag) {
  world.run(play(Scenario::other_tag));
  EXPECT_EQ(seen_by_target(), whole);
}

TEST_F(Delivery, of_many_pieces_happens_with_each) {
  world.run(play(Scenario::chunks));
  EXPECT_EQ(seen_by_target(), whole);
}

TEST_F(Delivery, has_not_happened_for_those_who_read_early) {
  world.run(WithBarrier{play(Scenario::read_early)});
  EXPECT_EQ(seen_by_target(), std::vector<u32>(8, ~0u)) << "0xff in every byte, every time";
  EXPECT_EQ(window.read(RankId{1}), whole);
}

TEST_F(Delivery, at_the_end_of_the_run_brings_everything) {
  world.run(play(Scenario::end_without_consuming));
  EXPECT_EQ(window.read(RankId{1}), whole);
}

TEST_F(Delivery, takes_later_bytes_of_the_same_rank_that_were_not_announced) {
  world.run(play(Scenario::overwrite_own_unannounced));
  EXPECT_EQ(seen_by_target(), (std::vector<u32>{10, 11, 16, 17, 0, 0, 0, 0}));
}

TEST_F(Delivery, names_a_rank_that_overwrites_what_is_under_way) {
  EXPECT_TRUE(says(
      error_of([&] { world.run(play(Scenario::overwrite_by_another)); }), Kind::kernel_failed,
      {"put in", "on rank 2 (cpu:0)", "it overwrites window 'board' of rank 1 at element 0",
       "which rank 0 has put and the target not yet consumed", "consume the notification first"}));
}

TEST_F(Delivery, names_a_rank_that_overwrites_what_it_announced_itself) {
  EXPECT_TRUE(says(error_of([&] { world.run(play(Scenario::overwrite_own_announced)); }),
                   Kind::kernel_failed,
                   {"on rank 0", "it overwrites window 'board' of rank 1", "rank 0 has put"}));
}

TEST_F(Delivery, finds_that_somebody_stored_into_what_was_under_way) {
  EXPECT_TRUE(
      says(error_of([&] { world.run(WithBarrier{play(Scenario::overwrite_by_store)}); }),
           Kind::kernel_failed,
           {"on rank 1",
            "somebody overwrote window 'board' of rank 1 at element 0 after rank 0 had put it"}));
}

TEST_F(Delivery, names_a_rank_that_gets_what_is_under_way) {
  EXPECT_TRUE(
      says(error_of([&] { world.run(play(Scenario::get_early)); }), Kind::kernel_failed,
           {"get in", "rank 2 reads window 'board' of rank 1 at element 0", "rank 0 has put"}));
}

TEST_F(Delivery, names_a_rank_that_forwards_what_it_has_not_consumed) {
  EXPECT_TRUE(says(error_of([&] { world.run(WithBarrier{play(Scenario::forward_early)}); }),
                   Kind::kernel_failed,
                   {"put_notify in", "rank 1 reads window 'board' of rank 1 at element 0"}));
}

TEST_F(Delivery, lets_a_rank_forward_what_it_has_consumed) {
  world.run(play(Scenario::forward_after_consumption));
  EXPECT_EQ(copy.read(RankId{2}), whole);
}

TEST_F(Delivery, lets_others_get_what_the_target_told_them_of) {
  world.run(play(Scenario::get_after_being_told));
  EXPECT_EQ(copy.read(RankId{2}), whole);
}

// Rank 0 puts, and stores a word; some of it again, before the target has seen the word.
struct PutThenWord {
  Window<u32> window, copy, words;
  u32 rounds;
  void operator()(Rank& self) const {
    auto const out = copy.local(self);
    RankId const one{1};
    if (self.id() == 0) {
      for (u32 i = 0; i < 8; ++i) out[i] = 10 + i;
      self.put(window.at(one), out.subspan(0, 4));
      for (u32 round = 1; round <= rounds; ++round) self.put_value(words.at(one), round);
      self.put(window.at(one, 3), out.subspan(7, 1));
      self.notify(window, one, Tag{0});
    }
    if (self.id() == 1) {
      self.wait_until(words.local(self), Compare::equal, rounds);
      for (u32 i = 0; i < 3; ++i) out[i] = window.local(self)[i];
      self.wait(window, Tag{0});
      out[3] = window.local(self)[3];
    }
  }
};

TEST_F(Delivery, of_puts_happens_when_a_later_word_is_seen) {
  auto const words = world.window<u32>(1);
  for (int run = 0; run < 2; ++run) {
    world.run(PutThenWord{window, copy, words, 3});
    EXPECT_EQ(copy.read(RankId{1})[0], 10);
    EXPECT_EQ(copy.read(RankId{1})[2], 12);
    EXPECT_EQ(copy.read(RankId{1})[3], 17);
    words.write(RankId{1}, 0, std::vector<u32>{0});
  }
}

TEST_F(Delivery, is_checked_again_after_a_run_that_broke_the_rule) {
  for (int i = 0; i < 3; ++i) {
    error_of([&] { world.run(play(Scenario::get_early)); });
    world.run(play(Scenario::well));
    EXPECT_EQ(seen_by_target(), whole);
  }
}

}  // namespace
}  // namespace meshpost
