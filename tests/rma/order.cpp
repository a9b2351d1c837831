// Messages from one rank to another arrive in the order in which they were sent, for all sizes.
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

constexpr u32 messages = 40;             // of each pair and round
constexpr u32 slot = 96;                 // bytes that a message may take, at most
constexpr u32 region = messages * slot;  // at each target for each sender

// Message k of a pair and round: its place in its region and its length. Messages are adjacent, but
// don't overlap: bytes in flight must not be overwritten. Those of the next round do overlap them.
struct Message {
  u32 offset, size;
};
MESHPOST_FN Message message(u64 seed, u32 from, u32 to, u32 round, u32 k) {
  u64 const draw = mixed(seed, from, mixed(to, round), k);
  u32 const place = (k * 7 + round * 3) % messages;  // each once, in no order
  u32 const begin = static_cast<u32>(draw >> 20) % 17,
            size = 1 + static_cast<u32>(draw >> 40) % (slot - begin);
  return {place * slot + begin, size};
}
MESHPOST_FN u8 byte_of(u64 seed, u32 from, u32 to, u32 round, u32 k, u64 i) {
  return static_cast<u8>(mixed(seed ^ round, from * 1000 + to, k) >> (i % 8 * 8)) ^
         static_cast<u8>(i);
}

struct MixedMessages {
  Window<u8> inbox, staging;
  u64 seed;
  u32 rounds;
  test::Findings findings;

  MESHPOST_FN void send(Rank& self, u32 round, u32 k) const {
    auto const out = staging.local(self);
    u32 const n = self.size(), me = self.id();
    for (u32 i = 0; i < n; ++i) {
      u32 const to = (me + i) % n;
      auto const [offset, size] = message(seed, me, to, round, k);
      auto const source = out.subspan(mixed(seed, k, i) % 17, size);
      self.each(size, [&](u64 b) { source[b] = byte_of(seed, me, to, round, k, b); });
      self.put_notify(inbox.at(RankId{to}, u64{me} * region + offset), source, Tag{me});
      self.flush(inbox);
    }
  }
  /// Message k of each sender, which is its first unconsumed one.
  MESHPOST_FN void receive(Rank& self, u32 round, u32 k) const {
    u32 const n = self.size(), me = self.id();
    auto const mine = inbox.local(self);
    for (u32 from = 0; from < n; ++from) {
      self.wait(inbox, Tag{from}, 1, RankId{from});
      auto const [offset, size] = message(seed, from, me, round, k);
      u64 const begin = u64{from} * region + offset;
      self.each(size, [&](u64 b) {
        findings.add(self, mine[begin + b] != byte_of(seed, from, me, round, k, b));
      });
    }
  }
  MESHPOST_FN void operator()(Rank& self) const {
    for (u32 round = 0; round < rounds; ++round) {
      for (u32 k = 0; k < messages; ++k) send(self, round, k);
      for (u32 k = 0; k < messages; ++k) receive(self, round, k);
      self.barrier();
    }
  }
};

class Order : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Order, test::all_shapes(), test::shape_name);

TEST_P(Order, is_first_in_first_out_for_each_pair) {
  u64 const seed =
      mixed(static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count()));
  SCOPED_TRACE("seed " + std::to_string(seed));
  u32 const n = world.size(), rounds = n > 10 ? 2 : 4;
  auto const inbox = world.window<u8>(u64{n} * region, Tags{n}, "inbox");
  auto const findings = test::make_findings(world);
  for (u32 to = 0; to < n; ++to) inbox.write(RankId{to}, 0, std::vector<u8>(u64{n} * region, 0xa5));
  auto const result =
      world.run(MixedMessages{inbox, world.window<u8>(slot + 17), seed, rounds, findings}, launch);
  EXPECT_TRUE(result.unconsumed.empty());
  EXPECT_EQ(test::total(world, findings), 0u);
  for (u32 to = 0; to < n; ++to) {  // and bytes between the messages have not changed
    std::vector<u8> expected(u64{n} * region, 0xa5);
    for (u32 from = 0; from < n; ++from)
      for (u32 round = 0; round < rounds; ++round)
        for (u32 k = 0; k < messages; ++k) {
          auto const [offset, size] = message(seed, from, to, round, k);
          for (u32 i = 0; i < size; ++i)
            expected[u64{from} * region + offset + i] = byte_of(seed, from, to, round, k, i);
        }
    EXPECT_TRUE(inbox.read(RankId{to}) == expected) << "at rank " << to;
  }
}

}  // namespace
}  // namespace meshpost
