// A count, its sender's word and a flag in 16 bytes.
#include "meshpost/rma/detail/via/proxy/packed_signal.hpp"

#include <gtest/gtest.h>

#include <random>

namespace meshpost {
namespace {

u32* at(u64 address) { return reinterpret_cast<u32*>(address); }

TEST(PackedSignal, says_what_it_was_given) {
  static_assert(sizeof(PackedSignal) == 16 && alignof(PackedSignal) == 16);
  std::mt19937_64 random(std::random_device{}());
  for (u32 i = 0; i < 1000; ++i) {
    u64 const counter = random() % (u64{1} << 48) & ~u64{3};
    u64 const distance = (1 + random() % 0xffff) * PackedSignal::unit;
    ASSERT_TRUE(PackedSignal::fits(at(counter), at(counter + distance)));
    PackedSignal const both{.address =
                                PackedSignal::pack_address(at(counter), at(counter + distance))};
    ASSERT_EQ(both.counter(), at(counter));
    ASSERT_TRUE(both.has_sender());
    ASSERT_EQ(both.sender_word(), at(counter + distance));
    ASSERT_TRUE(PackedSignal::fits(at(counter), nullptr));
    PackedSignal const signal{.address = PackedSignal::pack_address(at(counter), nullptr)};
    ASSERT_EQ(signal.counter(), at(counter));
    ASSERT_FALSE(signal.has_sender());
  }
}

TEST(PackedSignal, does_not_take_what_does_not_fit) {
  u64 const counter = 0x7f00'0000'1000;
  EXPECT_TRUE(PackedSignal::fits(at(counter), at(counter + 0xffff * PackedSignal::unit)));
  EXPECT_FALSE(PackedSignal::fits(at(counter), at(counter + 0x10000 * PackedSignal::unit)));
  EXPECT_FALSE(PackedSignal::fits(at(counter), at(counter + PackedSignal::unit / 2)));
  EXPECT_FALSE(PackedSignal::fits(at(counter), at(counter - PackedSignal::unit)));  // before it
  EXPECT_FALSE(PackedSignal::fits(at(counter), at(counter)));
  EXPECT_FALSE(PackedSignal::fits(at(u64{1} << 48), at((u64{1} << 48) + PackedSignal::unit)));
}

}  // namespace
}  // namespace meshpost
