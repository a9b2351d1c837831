// Barriers of the world, of a device and of splits, between puts and after plain stores.
#include "support/worlds.hpp"

namespace meshpost {
namespace {

// Each rank stores its round, meets the others, checks their stored rounds, and meets them again.
struct Rounds {
  Communicator where;
  Window<u32> words;
  u32 rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(where), me = self.id(where);
    if (n == 0) return;
    auto const mine = words.local(self);
    auto const seen = mine.subspan(1, 1);
    for (u32 round = 1; round <= rounds; ++round) {
      if (self.thread() == 0) mine[0] = round;
      self.publish();
      self.barrier(where);
      for (u32 const step : {1u, n / 2, n - 1}) {
        RankId const other = self.world_rank(where, RankId{(me + step) % n});
        self.get(seen, words.at(other));
        findings.add(self, seen[0] != round);
        self.sync();
      }
      self.barrier(where);
    }
  }
};

struct BetweenPuts {  // barriers of all kinds among notified puts: neither disturbs the other
  Communicator split;
  Window<u32> inbox;
  u32 rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    auto const mine = inbox.local(self);
    for (u32 round = 0; round < rounds; ++round) {
      u32 const step = 1 + round % n;
      if (self.thread() == 0) mine[1] = round * n + self.id();
      self.put_notify(inbox.at(RankId{(self.id() + step) % n}), mine.subspan(1, 1), Tag{round % 3});
      if (round % 3 == 0) self.barrier(self.device_communicator());
      if (round % 3 == 1) self.barrier(split);
      self.wait(inbox, Tag{round % 3});
      findings.add(self, mine[0] != round * n + (self.id() + n - step % n) % n);
      self.barrier();
    }
  }
};

class Barrier : public test::EveryShape {
 protected:
  void check(Communicator const& where, u32 rounds = 60) {
    auto const findings = test::make_findings(world);
    world.run(Rounds{where, world.window<u32>(2), rounds, findings}, launch);
    EXPECT_EQ(test::total(world, findings), 0u);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Barrier, test::all_shapes(), test::shape_name);

TEST_P(Barrier, joins_all_ranks) { check(world.communicator()); }
TEST_P(Barrier, joins_the_ranks_of_a_device) { check(world.device_communicator()); }
TEST_P(Barrier, joins_the_ranks_of_a_split) {
  check(world.split(world.communicator(), [](RankId rank) { return i64{rank % 2}; }));
}
TEST_P(Barrier, leaves_out_ranks_of_negative_color) {
  check(world.split(world.communicator(), [](RankId rank) { return rank % 3 == 1 ? -1 : 5; }));
}
TEST_P(Barrier, joins_a_split_of_a_split) {
  auto const parity = world.split(world.communicator(), [](RankId rank) { return i64{rank % 2}; });
  check(world.split(parity, [](RankId rank) { return i64{rank / 4 % 2}; }));
  check(world.split(world.device_communicator(), [](RankId rank) { return i64{rank % 2}; }));
}
TEST_P(Barrier, and_puts_do_not_disturb_each_other) {
  auto const findings = test::make_findings(world);
  auto const split = world.split(world.communicator(), [](RankId rank) { return i64{rank / 2}; });
  world.run(BetweenPuts{split, world.window<u32>(2), 60, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

// On GPUs with so many ranks, the last one of a device tells the others. On CPU devices it always
// does.
TEST(BarrierOnGpus, of_many_ranks_joins_them) {
  if (!test::on_gpus()) GTEST_SKIP() << "needs GPUs";
  World world(test::options(80, test::devices(test::Spread::several_devices)));
  Launch launch;
  launch.threads = test::warp_threads;
  auto const findings = test::make_findings(world);
  auto const words = world.window<u32>(2);
  for (auto const& where : {world.communicator(), world.device_communicator()})
    world.run(Rounds{where, words, 60, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

}  // namespace
}  // namespace meshpost
