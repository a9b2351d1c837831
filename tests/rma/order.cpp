// Messages from one rank to another arrive in the order in which they were sent, whatever their sizes.
#include <cstdio>

#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::mixed;

constexpr u32 region = 2048;   // bytes at each target for each sender
constexpr u32 messages = 40;   // of each pair

// Message k of a pair: where in the region it lands and how long it is; later ones overlap earlier ones.
struct Message {
  u32 offset, size;
};
MESHPOST_FN Message message(u64 seed, u32 from, u32 to, u32 k) {
  u64 const draw = mixed(seed, from, to, k);
  u32 const offset = static_cast<u32>(draw % region);
  u32 const size = static_cast<u32>((draw >> 32) % 8 == 0 ? region : 1 + (draw >> 40) % 64);
  return {offset, size < region - offset ? size : region - offset};
}
MESHPOST_FN u8 byte_of(u64 seed, u32 from, u32 to, u32 k, u64 i) {
  return static_cast<u8>(mixed(seed ^ 0x5eed, mixed(from, to), k, i));
}

struct OverlappingMessages {
  Window<u8> inbox, staging;
  Window<u32> serials;  // message k also brings its serial number to a place of its own
  u64 seed;
  test::Findings findings;

  MESHPOST_FN u32 serial(u32 from, u32 to, u32 k) const { return static_cast<u32>(mixed(seed, k, from, to)); }

  MESHPOST_FN void operator()(Rank& self) const {
    u32 const n = self.size(), me = self.id();
    auto const out = staging.local(self);
    auto const arrived = serials.local(self);
    auto const number = arrived.subspan(u64{n} * messages, 1);
    for (u32 k = 0; k < messages; ++k)
      for (u32 i = 0; i < n; ++i) {
        u32 const to = (me + i) % n;
        auto const [offset, size] = message(seed, me, to, k);
        u32 const shift = static_cast<u32>(mixed(seed, k, i) % 17);
        self.each(size, [&](u64 b) { out[shift + b] = byte_of(seed, me, to, k, b); });
        if (self.thread() == 0) number[0] = serial(me, to, k);
        self.put(serials.at(RankId{to}, u64{me} * messages + k), number);
        self.put_notify(inbox.at(RankId{to}, u64{me} * region + offset), out.subspan(shift, size), Tag{me});
        self.flush(inbox);
        self.flush(serials);
      }
    for (u32 k = 0; k < messages; ++k)
      for (u32 from = 0; from < n; ++from) {
        self.wait(inbox, Tag{from}, 1, RankId{from});
        findings.add(self, arrived[u64{from} * messages + k] != serial(from, me, k));
      }
  }
};

class Order : public test::EveryShape {};
INSTANTIATE_TEST_SUITE_P(Shapes, Order, test::all_shapes(), test::shape_name);

TEST_P(Order, is_first_in_first_out_for_each_pair) {
  u64 const seed = mixed(static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count()));
  SCOPED_TRACE("seed " + std::to_string(seed));
  u32 const n = world.size();
  auto const inbox = world.window<u8>(u64{n} * region, Tags{n}, "inbox");
  auto const findings = test::make_findings(world);
  for (u32 to = 0; to < n; ++to) inbox.write(RankId{to}, 0, std::vector<u8>(u64{n} * region, 0xa5));
  world.run(OverlappingMessages{inbox, world.window<u8>(region + 17), world.window<u32>(u64{n} * messages + 1), seed, findings},
            launch);
  EXPECT_EQ(test::total(world, findings), 0u);
  for (u32 to = 0; to < n; ++to) {
    std::vector<u8> expected(u64{n} * region, 0xa5);
    for (u32 from = 0; from < n; ++from)
      for (u32 k = 0; k < messages; ++k) {
        auto const [offset, size] = message(seed, from, to, k);
        for (u32 i = 0; i < size; ++i) expected[u64{from} * region + offset + i] = byte_of(seed, from, to, k, i);
      }
    EXPECT_TRUE(inbox.read(RankId{to}) == expected) << "at rank " << to;
  }
}

}  // namespace
}  // namespace meshpost
