// Puts and waits that a rank prepares once and repeats.
#include <filesystem>
#include <fstream>

#include "support/misuse.hpp"
#include "support/sink.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::mixed;
using test::says;

// In each round a rank puts `chunk` numbers to the next one, and tells the one before it by a
// notification that it has read those of the round before. Everything is prepared before.
struct PreparedRounds {
  Window<u32> inbox;  // two halves for the numbers that come, one for those that go
  Window<u32> counters;
  u32 chunk, rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), before = (self.id() + n - 1) % n;
    RankId const next{(self.id() + 1) % n}, previous{before};
    auto const mine = inbox.local(self);
    auto const out = mine.subspan(2 * chunk, chunk);
    PreparedPut const put[2] = {
        self.prepare_put_notify(inbox.at(next), out, Tag{0}),
        self.prepare_put_notify(inbox.at(next, chunk), out, counters, Tag{1})};
    PreparedWait const come[2] = {self.prepare_wait(inbox, Tag{0}, 1, previous),
                                  self.prepare_wait(counters, Tag{1}, 1, previous)};
    PreparedPut const read = self.prepare_notify(counters, previous, Tag{0});
    PreparedWait const was_read = self.prepare_wait(counters, Tag{0}, 1, next);
    for (u32 round = 0; round < rounds; ++round) {
      if (round > 0) self.wait(was_read);
      self.each(chunk, [&](u64 i) { out[i] = static_cast<u32>(mixed(self.id(), round, i)); });
      self.put_notify(put[round % 2]);
      self.wait(come[round % 2]);
      self.each(chunk, [&](u64 i) {
        findings.add(self,
                     mine[round % 2 * chunk + i] != static_cast<u32>(mixed(before, round, i)));
      });
      self.put_notify(read);
    }
    self.wait(was_read);
  }
};

// Source and target are the same memory of a device: nothing is copied.
struct PreparedInPlace {
  Window<u32> shared;  // the parts of a device's ranks lie on each other
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.local_size(), me = self.local_id();
    RankId const next{self.id() - me + (me + 1) % n};
    auto const all = shared.local(self);
    auto const put = self.prepare_put_notify(shared.at(next, me), all.subspan(me, 1), Tag{0});
    auto const come = self.prepare_wait(shared, Tag{0});
    if (self.thread() == 0) all[me] = 7 * me + 1;
    self.put_notify(put);
    self.wait(come);
    u32 const last = (me + n - 1) % n;
    findings.add(self, all[last] != 7 * last + 1);
  }
};

class Prepared : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Prepared, test::all_shapes(), test::shape_name);

void play_rounds(World& world, Launch const& launch, u32 chunk) {
  auto const findings = test::make_findings(world);
  auto const inbox = world.window<u32>(3 * chunk), counters = world.window<u32>(0, Tags{2});
  auto const result = world.run(PreparedRounds{inbox, counters, chunk, 41, findings}, launch);
  EXPECT_TRUE(result.unconsumed.empty());
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Prepared, puts_bring_their_bytes_each_time) {
  for (u32 const chunk : {1u, 300u, 3000u}) play_rounds(world, launch, chunk);
}

TEST_P(Prepared, puts_to_the_same_memory_only_notify) {
  auto const findings = test::make_findings(world);
  u32 const each = world.ranks_per_device();
  world.run(PreparedInPlace{world.window<u32>(shared_parts(world, each)), findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST(PreparedPuts, go_direct_without_lanes_and_with_part_of_a_warp) {
  auto options = test::options(3, test::devices(test::Spread::several_devices));
  options.lanes = 0;
  World world(options);
  Launch launch;
  for (u32 const threads : {48u, 128u}) {
    launch.threads = {threads, 1, 1};
    play_rounds(world, launch, 500);
  }
}

// The operations before and behind prepared ones: tests in vain, puts that a notification must
// order, barriers and collectives in turn, a wait for nothing.
struct AmongOthers {
  Window<u32> inbox;
  Window<u64> sums;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), before = (self.id() + n - 1) % n;
    RankId const next{(self.id() + 1) % n};
    auto const mine = inbox.local(self);
    auto const put = self.prepare_notify(inbox, next, Tag{0});
    auto const come = self.prepare_wait(inbox, Tag{0}),
               nothing = self.prepare_wait(inbox, Tag{1}, 0);
    auto const all = self.state().tags.communicator, here = self.device_communicator();
    for (u32 round = 0; round < 6; ++round) {
      if (round == 3)
        for (u32 i = 0; i < 1500; ++i) findings.add(self, self.test(inbox, Tag{2}));
      if (self.thread() == 0) mine[1] = self.id() + round;
      self.put(inbox.at(next), mine.subspan(1, 1));
      self.put_notify(put);
      self.wait(nothing);
      self.wait(come);
      findings.add(self, mine[0] != before + round);
      self.barrier(here);
      if (self.thread() == 0) sums.local(self)[0] = 1;
      self.all_reduce(round % 2 ? here : all, sums.local(self), Sum{});
      findings.add(self, sums.local(self)[0] != (round % 2 ? self.local_size() : n));
      self.barrier(here);
      self.barrier();
    }
  }
};

TEST_P(Prepared, operations_go_with_others) {
  auto const findings = test::make_findings(world);
  world.run(AmongOthers{world.window<u32>(2, Tags{3}), world.window<u64>(1), findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST(PreparedPuts, are_on_the_timeline) {
  World world(test::options(2, test::devices(test::Spread::one_device)));
  auto const file = testing::TempDir() + "prepared-" + std::to_string(getpid()) + ".json";
  Launch launch;
  launch.trace = file;
  play_rounds(world, launch, 300);
  std::string text;
  std::ifstream in(file);
  std::getline(in, text, '\0');
  EXPECT_NE(text.find("put_notify"), std::string::npos);
  EXPECT_NE(text.find("wait"), std::string::npos);
  std::filesystem::remove(file);
}

// Rank 0 fails while the others repeat operations that never have to wait long.
struct Endless {
  Window<u32> counters;
  u32 how;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() == 0) {
      u64 const begin = self.now();
      while (self.now() - begin < 20'000'000) self.sync();
      self.fail("enough");
    }
    auto const to_me = self.prepare_notify(counters, self.id(), Tag{0});
    auto const come = self.prepare_wait(counters, Tag{0});
    for (;;) {
      self.put_notify(to_me);
      if (how == 0) self.wait(come);
      if (how == 1) self.test(counters, Tag{0});
    }
  }
};

TEST(PreparedPuts, end_when_another_rank_fails) {
  test::Listener const listener;
  World world(test::options(3, test::devices(test::Spread::several_devices)));
  auto const counters = world.window<u32>(0);
  for (bool const with_host : {false, true})
    for (u32 how = 0; how < 3; ++how) {
      Launch launch;
      launch.with_host = with_host;
      auto const error = error_of([&] { world.run(Endless{counters, how}, launch); });
      EXPECT_TRUE(says(error, Kind::kernel_failed, {"rank 0", "enough"})) << how << with_host;
    }
}

// Rank 0 prepares for itself; rank 1 uses that.
struct OfAnother {
  Window<PreparedPut> puts;
  Window<PreparedWait> waits;
  Window<u32> counters;
  bool put;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const my_puts = puts.local(self);
    auto const my_waits = waits.local(self);
    if (self.id() == 0) {
      auto const one = self.prepare_notify(counters, RankId{0}, Tag{0});
      auto const two = self.prepare_wait(counters, Tag{0});
      if (self.thread() == 0) my_puts[0] = one, my_waits[0] = two;
      self.put_notify(puts.at(RankId{1}), my_puts, Tag{0});
      self.put_notify(waits.at(RankId{1}), my_waits, Tag{0});
    } else if (self.id() == 1) {
      self.wait(puts, Tag{0});
      self.wait(waits, Tag{0});
      if (put) self.put_notify(my_puts[0]);
      else self.wait(my_waits[0]);
    }
  }
};

TEST(PreparedPuts, of_another_rank_are_refused) {
  test::Listener const listener;
  World world(test::options(3, test::devices(test::Spread::one_device)));
  auto const puts = world.window<PreparedPut>(1);
  auto const waits = world.window<PreparedWait>(1);
  auto const counters = world.window<u32>(0);
  for (bool const put : {false, true}) {
    auto const error = error_of([&] { world.run(OfAnother{puts, waits, counters, put}); });
    EXPECT_TRUE(says(error, Kind::kernel_failed, {"rank 1", "has not prepared", "documentation"}));
  }
}

struct Keep {
  Window<PreparedPut> puts;
  Window<PreparedWait> waits;
  Window<u32> counters;
  MESHPOST_FN void operator()(Rank& self) const {
    auto const one = self.prepare_notify(counters, self.id(), Tag{0});
    auto const two = self.prepare_wait(counters, Tag{0});
    if (self.thread() == 0) puts.local(self)[0] = one, waits.local(self)[0] = two;
  }
};
struct UseKept {
  Window<PreparedPut> puts;
  Window<PreparedWait> waits;
  bool put;
  MESHPOST_FN void operator()(Rank& self) const {
    if (self.id() != 1) return;
    if (put) self.put_notify(puts.local(self)[0]);
    else self.wait(waits.local(self)[0]);
  }
};

TEST(PreparedPuts, to_a_freed_window_are_refused) {
  test::Listener const listener;
  World world(test::options(3, test::devices(test::Spread::one_device)));
  auto const puts = world.window<PreparedPut>(1);
  auto const waits = world.window<PreparedWait>(1);
  auto const counters = world.window<u32>(0);
  world.run(Keep{puts, waits, counters});
  world.free(counters);
  for (bool const put : {false, true}) {
    auto const error = error_of([&] { world.run(UseKept{puts, waits, put}); });
    EXPECT_TRUE(says(error, Kind::kernel_failed, {"rank 1", "freed"}));
  }
}

}  // namespace
}  // namespace meshpost
