// Words that are stored whole and polled, and bytes read by get.
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

template <class T>
struct CountUp {  // passes 1, 2, ... round the ring, each after the previous one
  Window<T> words;
  u32 rounds;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = words.local(self);
    for (u32 round = 1; round <= rounds; ++round) {
      self.put_value(words.at(next), static_cast<T>(round));
      self.wait_until(mine, Compare::greater_equal, static_cast<T>(round));
      findings.add(self, mine[0] < static_cast<T>(round));
      self.barrier();
    }
  }
};

struct EachComparison {
  Window<i32> words;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    auto const mine = words.local(self);
    self.put_value(words.at(next, 0), -5);
    self.wait_until(mine, Compare::equal, -5);
    self.wait_until(mine, Compare::not_equal, 0);
    self.wait_until(mine, Compare::less, -4);
    self.wait_until(mine, Compare::less_equal, -5);
    self.put_value(words.at(next, 1), 9);
    self.wait_until(mine.subspan(1), Compare::greater, 8);
    self.wait_until(mine.subspan(1), Compare::greater_equal, 9);
  }
};

template <class T>
struct SmallWords {
  Window<T> words;
  MESHPOST_FN void operator()(Rank& self) const {
    RankId const next{(self.id() + 1) % self.size()};
    for (u32 i = 0; i < 8; ++i) self.put_value(words.at(next, i), static_cast<T>(self.id() + i));
    self.notify(words, next, Tag{0});
    self.wait(words, Tag{0});
  }
};

struct ValueAfterPuts {  // a value that follows puts to the same rank says that they have arrived
  Window<u32> data;
  Window<u32> flag;
  u32 size;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), previous = (self.id() + n - 1) % n;
    RankId const next{(self.id() + 1) % n};
    auto const mine = data.local(self);
    for (u32 round = 1; round <= 20; ++round) {
      self.each(size,
                [&](u64 i) { mine[size + i] = static_cast<u32>(mixed(self.id(), round, i)); });
      self.put(data.at(next), mine.subspan(size, size));
      self.put_value(flag.at(next), round);
      self.wait_until(flag.local(self), Compare::equal, round);
      self.each(size, [&](u64 i) {
        findings.add(self, mine[i] != static_cast<u32>(mixed(previous, round, i)));
      });
      self.barrier();
    }
  }
};

struct ValueAfterNotifications {  // the same with notified puts, by lane if possible
  Window<u32> data;
  Window<u32> flag;
  u32 size;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), previous = (self.id() + n - 1) % n, pieces = 3;
    RankId const next{(self.id() + 1) % n};
    auto const mine = data.local(self);
    for (u32 round = 1; round <= 20; ++round) {
      self.each(size * pieces, [&](u64 i) {
        mine[size * pieces + i] = static_cast<u32>(mixed(self.id(), round, i));
      });
      for (u32 k = 0; k < pieces; ++k)
        self.put_notify(data.at(next, u64{k} * size), mine.subspan(u64{k + pieces} * size, size),
                        Tag{0});
      self.put_value(flag.at(next), round);
      self.wait_until(flag.local(self), Compare::equal, round);
      self.each(size * pieces, [&](u64 i) {
        findings.add(self, mine[i] != static_cast<u32>(mixed(previous, round, i)));
      });
      self.wait(data, Tag{0}, pieces);  // they are not consumed yet
      self.barrier();
    }
  }
};

struct Fetch {  // all ranks get the words that all ranks published
  Window<u32> data, copy;
  u32 size;
  test::Findings findings;
  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size();
    auto const mine = data.local(self);
    auto const here = copy.local(self);
    for (u32 round = 0; round < 10; ++round) {
      self.each(size, [&](u64 i) { mine[i] = static_cast<u32>(mixed(self.id(), round, i)); });
      self.publish();
      for (u32 to = 0; to < n; ++to) self.notify(data, RankId{to}, Tag{self.id()});
      for (u32 k = 1; k <= n; ++k) {
        u32 const from = (self.id() + k) % n;
        self.wait(data, Tag{from});
        self.get(here, data.at(RankId{from}));
        self.each(size, [&](u64 i) {
          findings.add(self, here[i] != static_cast<u32>(mixed(from, round, i)));
        });
        self.sync();
      }
      self.barrier();
    }
  }
};

class Polled : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Polled, test::all_shapes(), test::shape_name);

TEST_P(Polled, words_of_every_type_arrive_whole) {
  auto const findings = test::make_findings(world);
  u32 const rounds = 20;
  world.run(CountUp<i32>{world.window<i32>(1), rounds, findings}, launch);
  world.run(CountUp<u32>{world.window<u32>(1), rounds, findings}, launch);
  world.run(CountUp<i64>{world.window<i64>(1), rounds, findings}, launch);
  world.run(CountUp<u64>{world.window<u64>(1), rounds, findings}, launch);
  world.run(CountUp<float>{world.window<float>(1), rounds, findings}, launch);
  world.run(CountUp<double>{world.window<double>(1), rounds, findings}, launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Polled, words_are_compared_every_way) {
  world.run(EachComparison{world.window<i32>(2)}, launch);
}

TEST_P(Polled, words_of_one_and_two_bytes_leave_their_neighbours_alone) {
  auto const bytes = world.window<u8>(9);
  auto const shorts = world.window<unsigned short>(9);
  world.run(SmallWords<u8>{bytes}, launch);
  world.run(SmallWords<unsigned short>{shorts}, launch);
  u32 const n = world.size();
  for (u32 r = 0; r < n; ++r) {
    auto const a = bytes.read(RankId{r});
    auto const b = shorts.read(RankId{r});
    for (u32 i = 0; i < 8; ++i)
      EXPECT_TRUE(a[i] == (r + n - 1) % n + i && b[i] == (r + n - 1) % n + i) << r << " " << i;
    EXPECT_TRUE(a[8] == 0 && b[8] == 0);
  }
}

TEST_P(Polled, values_follow_earlier_puts) {
  u32 const size = 700;
  auto const findings = test::make_findings(world);
  world.run(ValueAfterPuts{world.window<u32>(2 * size), world.window<u32>(1), size, findings},
            launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

TEST_P(Polled, values_follow_earlier_notified_puts) {
  auto wanted = test::options(GetParam().ranks, test::devices(GetParam().spread));
  for (u32 const lanes : {0u, 8u}) {
    wanted.lanes = lanes;
    World with_lanes(wanted);
    auto const findings = test::make_findings(with_lanes);
    for (u32 const size : {1u, 90u, 700u})  // words: the last are too long for a lane
      with_lanes.run(ValueAfterNotifications{with_lanes.window<u32>(6 * size, Tags{1}),
                                             with_lanes.window<u32>(1), size, findings},
                     launch);
    EXPECT_EQ(test::total(with_lanes, findings), 0u) << lanes << " lanes";
  }
}

TEST_P(Polled, published_stores_are_fetched) {
  u32 const size = 300;
  auto const findings = test::make_findings(world);
  world.run(
      Fetch{world.window<u32>(size, Tags{world.size()}), world.window<u32>(size), size, findings},
      launch);
  EXPECT_EQ(test::total(world, findings), 0u);
}

}  // namespace
}  // namespace meshpost
