// Numbers of freed windows as ranges, and the range that kernels keep in registers.
#include "rma/windows/freed_windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace meshpost::detail {
namespace {

using Ranges = std::vector<FreedWindows::Range>;

Ranges ranges_of(std::initializer_list<u32> numbers) {
  Ranges ranges;
  for (u32 const number : numbers) ranges = with_number(std::move(ranges), number);
  return ranges;
}

std::string text(Ranges const& ranges) {
  std::string all;
  for (auto const& [begin, end] : ranges)
    all += std::to_string(begin) + "-" + std::to_string(end - 1) + " ";
  return all;
}

TEST(FreedNumbers, that_follow_each_other_are_one_range) {
  EXPECT_EQ(text(ranges_of({5, 3, 9, 4, 1})), "1-1 3-5 9-9 ");
  EXPECT_EQ(text(ranges_of({1, 2, 4, 5, 3})), "1-5 ");
  EXPECT_EQ(text(ranges_of({7, 7, 6, 7})), "6-7 ");
}

TEST(FreedNumbers, are_found_and_only_those) {
  std::mt19937 random(1);
  std::set<u32> freed;
  Ranges ranges;
  for (int i = 0; i < 200; ++i) {
    u32 const number = 1 + static_cast<u32>(random() % 300);
    freed.insert(number);
    ranges = with_number(std::move(ranges), number);
    auto const [begin, end] = around(ranges, 301);
    FreedWindows const all{begin, end - begin, static_cast<u32>(ranges.size()), ranges.data()};
    for (u32 n = 0; n <= 310; ++n) {
      EXPECT_EQ(all.contains(n), freed.contains(n));
      EXPECT_TRUE(all.may_contain(n) || !freed.contains(n));
    }
  }
}

TEST(FreedNumbers, leave_most_windows_outside_of_the_range_that_is_looked_up) {
  auto const span = [](Ranges const& ranges, u32 next) {
    auto const [begin, end] = around(ranges, next);
    return std::to_string(begin) + "+" + std::to_string(end - begin);
  };
  EXPECT_EQ(span({}, 9), "0+0");
  EXPECT_EQ(span(ranges_of({4}), 9), "4+1");
  EXPECT_EQ(span(ranges_of({4, 6}), 9), "4+3");  // 5 is looked up; 1 to 3, 7 and 8 are not
  // 3 to 7 are not looked up. Windows made after 8 are looked up, and so are those before 2.
  auto const [begin, end] = around(ranges_of({2, 8}), 9);
  FreedWindows const freed{begin, end - begin, 0, nullptr};
  for (u32 const n : {3, 5, 7}) EXPECT_FALSE(freed.may_contain(n)) << n;
  for (u32 const n : {1, 2, 8, 9, 100}) EXPECT_TRUE(freed.may_contain(n)) << n;
}

}  // namespace
}  // namespace meshpost::detail
