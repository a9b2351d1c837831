#include "meshpost/device/condition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace meshpost {
namespace {

bool counted(u32 word, u32 value) {
  return holds({nullptr, value, WordType::counter, Compare::greater_equal}, word);
}

TEST(Condition, of_a_counter_holds_across_the_wrap_around) {
  EXPECT_TRUE(counted(5, 5));
  EXPECT_TRUE(counted(6, 5));
  EXPECT_FALSE(counted(4, 5));
  EXPECT_TRUE(counted(0, 0xffffffffu));  // one more than
  EXPECT_TRUE(counted(3, 0xfffffffau));
  EXPECT_FALSE(counted(0xffffffffu, 0));  // one less than
  EXPECT_FALSE(counted(0xfffffffau, 3));
  EXPECT_TRUE(counted(0x7fffffffu, 0));
  EXPECT_FALSE(counted(0x80000000u, 0));
  static_assert(holds({nullptr, 1}, 1));
}

template <class T>
void check(WordType type, T low, T high) {
  ASSERT_EQ(width(type), sizeof(T));
  auto const ask = [&](T word, Compare compare, T value) {
    return holds({nullptr, bits_of(value), type, compare}, bits_of(word));
  };
  for (T const word : {low, high})
    for (T const value : {low, high}) {
      EXPECT_EQ(ask(word, Compare::equal, value), word == value);
      EXPECT_EQ(ask(word, Compare::not_equal, value), word != value);
      EXPECT_EQ(ask(word, Compare::less, value), word < value);
      EXPECT_EQ(ask(word, Compare::less_equal, value), word <= value);
      EXPECT_EQ(ask(word, Compare::greater, value), word > value);
      EXPECT_EQ(ask(word, Compare::greater_equal, value), word >= value);
    }
}

TEST(Condition, compares_every_type_as_cpp_does) {
  check<u32>(WordType::u32_, 3, 0xfffffff0u);
  check<i32>(WordType::i32_, -7, 3);
  check<u64>(WordType::u64_, 3, ~u64{0});
  check<i64>(WordType::i64_, std::numeric_limits<i64>::min(), 1);
  check<float>(WordType::f32_, -1.5f, 2.5f);
  check<double>(WordType::f64_, -1e300, 1e-300);
  check<float>(WordType::f32_, -std::numeric_limits<float>::infinity(),
               std::numeric_limits<float>::infinity());
}

TEST(Condition, on_not_a_number_holds_only_for_not_equal) {
  double const nan = std::nan("");
  for (auto compare : {Compare::equal, Compare::less, Compare::less_equal, Compare::greater,
                       Compare::greater_equal})
    EXPECT_FALSE(holds({nullptr, bits_of(1.0), WordType::f64_, compare}, bits_of(nan)));
  EXPECT_TRUE(holds({nullptr, bits_of(1.0), WordType::f64_, Compare::not_equal}, bits_of(nan)));
}

TEST(Condition, keeps_bits_through_words) {
  EXPECT_EQ(from_bits<float>(bits_of(1.25f)), 1.25f);
  EXPECT_EQ(from_bits<i32>(bits_of(i32{-1})), -1);
  EXPECT_EQ(bits_of(i32{-1}), 0xffffffffull);  // zero-extended
  EXPECT_EQ(from_bits<double>(bits_of(-0.5)), -0.5);
}

}  // namespace
}  // namespace meshpost
