#include "meshpost/base/span.hpp"

#include <gtest/gtest.h>

#include "meshpost/rma/window.hpp"

namespace meshpost {
namespace {

TEST(LocalSpan, names_parts_of_itself) {
  int numbers[10] = {};
  LocalSpan<int> const all(numbers, 10);
  EXPECT_EQ(all.subspan(3, 4).data(), numbers + 3);
  EXPECT_EQ(all.subspan(3, 4).size(), 4u);
  EXPECT_EQ(all.subspan(3).size(), 7u);
  EXPECT_EQ(all.subspan(10).size(), 0u);
  EXPECT_TRUE(all.subspan(10, 0).valid());
  EXPECT_EQ(all.bytes(), 40u);
  LocalSpan<int const> const constant = all;
  EXPECT_EQ(constant.end(), numbers + 10);
}

TEST(LocalSpan, that_leaves_its_bounds_is_invalid_and_stays_so) {
  int numbers[10] = {};
  LocalSpan<int> const all(numbers, 10);
  for (auto const& span : {all.subspan(11), all.subspan(3, 8), all.subspan(0, 11),
                           all.subspan(~u64{0}, 2), all.subspan(2, ~u64{0})}) {
    EXPECT_FALSE(span.valid());
    EXPECT_FALSE(span.subspan(0, 0).valid());
    EXPECT_FALSE(span.subspan(0).valid());
    EXPECT_FALSE(LocalSpan<int const>(span).valid());
  }
}

TEST(RemoteSpan, that_leaves_its_bounds_stays_beyond_them) {
  using Remote = RemoteSpan<int>;
  Remote const all = Remote(WindowInfo{}, RankId{0}, 2).subspan(0, 10);
  EXPECT_EQ(all.subspan(3, 4).offset(), 5u);
  EXPECT_EQ(all.subspan(3, 4).count(), 4u);
  EXPECT_EQ(all.subspan(3).count(), 7u);
  for (auto const& span :
       {all.subspan(11), all.subspan(3, 8), all.subspan(~u64{0}, 2), all.subspan(2, ~u64{0} - 1)}) {
    EXPECT_EQ(span.offset(), Remote::beyond);
    EXPECT_EQ(span.subspan(0, 1).offset(), Remote::beyond);
    EXPECT_EQ(span.subspan(1, 1).offset(), Remote::beyond);
    EXPECT_EQ(span.subspan(1).offset(), Remote::beyond);
  }
  Remote const open(WindowInfo{}, RankId{0}, 5);
  EXPECT_EQ(open.subspan(~u64{0} - 2, 1).offset(), Remote::beyond);  // not 2
  EXPECT_EQ(open.subspan(3).count(), Remote::to_the_end);
}

}  // namespace
}  // namespace meshpost
