// A count, the word for its origin and a flag in 16 bytes.
#include <gtest/gtest.h>

#include <random>

#include "meshpost/rma/detail/via/message.hpp"

namespace meshpost::via {
namespace {

TEST(Signal, says_what_it_was_given) {
  static_assert(sizeof(Signal) == 16 && alignof(Signal) == 16);
  std::mt19937_64 random(std::random_device{}());
  for (u32 i = 0; i < 1000; ++i) {
    u64 const at = 4 * (1 + random() % (Signal::most / 4 - 1));
    u64 const distance = (1 + random() % 0xffff) * Signal::unit;
    auto const both = Signal::of(at, distance, 7);
    ASSERT_TRUE(both.any());
    ASSERT_FALSE(both.has_more());
    ASSERT_EQ(both.at(), at);
    ASSERT_EQ(both.distance(), distance);
    ASSERT_EQ(both.value(), 1u);
    ASSERT_EQ(reinterpret_cast<u64>(both.origin_word()), at + distance);
    auto const alone = Signal::of(at, 0, 5);
    ASSERT_EQ(alone.at(), at);
    ASSERT_EQ(alone.distance(), 0u);
    ASSERT_EQ(alone.value(), 5u);
  }
  EXPECT_FALSE(Signal{}.any());
}

TEST(Signal, stays_the_same_in_other_addresses) {
  auto const there = Signal::of(u64{0x7f00'0000'1000}, 4 * Signal::unit, 9).moved_to(64);
  EXPECT_EQ(there.at(), 64u);
  EXPECT_EQ(there.distance(), 4 * Signal::unit);
  EXPECT_EQ(there.origin, 9u);
}

TEST(Signal, in_a_ring_tells_that_more_stands_behind_it) {
  Message in_ring;
  Message{.signal = Signal::of(u64{64}, 0, 3), .address = 8, .bytes = 5}.put_into(in_ring);
  EXPECT_TRUE(in_ring.signal.has_more());
  EXPECT_EQ(in_ring.signal.at(), 64u);
  EXPECT_EQ(in_ring.signal.value(), 3u);
  EXPECT_EQ(in_ring.address, 8u);
  Message{.address = 8}.put_into(in_ring);
  EXPECT_TRUE(in_ring.signal.has_more());
  EXPECT_FALSE(in_ring.signal.any());
}

}  // namespace
}  // namespace meshpost::via
