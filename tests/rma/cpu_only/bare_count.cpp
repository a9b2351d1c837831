// A count, its sender's word and a flag in 16 bytes.
#include "meshpost/rma/detail/via/proxy/bare_count.hpp"

#include <gtest/gtest.h>

#include <random>

namespace meshpost {
namespace {

u32* at(u64 address) { return reinterpret_cast<u32*>(address); }

TEST(BareCount, says_what_it_was_given) {
  static_assert(sizeof(BareCount) == 16 && alignof(BareCount) == 16);
  std::mt19937_64 random(std::random_device{}());
  for (u32 i = 0; i < 1000; ++i) {
    u64 const counter = random() % (u64{1} << 48) & ~u64{3};
    u64 const distance = (1 + random() % 0xffff) * BareCount::unit;
    ASSERT_TRUE(BareCount::fits(at(counter), at(counter + distance)));
    BareCount const both{.place = BareCount::place_of(at(counter), at(counter + distance))};
    ASSERT_EQ(both.counter(), at(counter));
    ASSERT_TRUE(both.has_sender());
    ASSERT_EQ(both.sender_word(), at(counter + distance));
    ASSERT_TRUE(BareCount::fits(at(counter), nullptr));
    BareCount const alone{.place = BareCount::place_of(at(counter), nullptr)};
    ASSERT_EQ(alone.counter(), at(counter));
    ASSERT_FALSE(alone.has_sender());
  }
}

TEST(BareCount, does_not_take_what_does_not_fit) {
  u64 const counter = 0x7f00'0000'1000;
  EXPECT_TRUE(BareCount::fits(at(counter), at(counter + 0xffff * BareCount::unit)));
  EXPECT_FALSE(BareCount::fits(at(counter), at(counter + 0x10000 * BareCount::unit)));
  EXPECT_FALSE(BareCount::fits(at(counter), at(counter + BareCount::unit / 2)));
  EXPECT_FALSE(BareCount::fits(at(counter), at(counter - BareCount::unit)));  // before it
  EXPECT_FALSE(BareCount::fits(at(counter), at(counter)));
  EXPECT_FALSE(BareCount::fits(at(u64{1} << 48), at((u64{1} << 48) + BareCount::unit)));
}

}  // namespace
}  // namespace meshpost
