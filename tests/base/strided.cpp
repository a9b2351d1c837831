#include "meshpost/base/strided.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace meshpost {
namespace {

// The places of a layout's elements, x fastest.
std::vector<u64> places(StridedLayout const& layout) {
  std::vector<u64> all;
  for (u64 k = 0; k < layout.extents.z; ++k)
    for (u64 j = 0; j < layout.extents.y; ++j)
      for (u64 i = 0; i < layout.extents.x; ++i)
        all.push_back(layout.offset + i * layout.strides.x + j * layout.strides.y +
                      k * layout.strides.z);
  return all;
}

constexpr u64 huge = ~u64{0};

TEST(StridedLayout, of_a_grid_names_each_element_in_turn) {
  auto const grid = StridedLayout::dense({4, 3, 2});
  EXPECT_EQ(grid.volume(), 24u);
  EXPECT_EQ(grid.reach(), 24u);
  auto const all = places(grid);
  for (u64 i = 0; i < 24; ++i) EXPECT_EQ(all[i], i);
}

TEST(StridedLayout, of_a_subarray_names_a_face) {
  auto const grid = StridedLayout::dense({4, 3, 2});
  auto const face = grid.subarray({3, 1, 0}, {1, 2, 2});
  EXPECT_EQ(places(face), (std::vector<u64>{7, 11, 19, 23}));
  EXPECT_EQ(face.reach(), 24u);
  EXPECT_EQ(places(face.subarray({0, 1, 1}, {})), std::vector<u64>{23});
}

TEST(StridedLayout, may_be_written_down) {
  StridedLayout const columns{.extents = {2, 3}, .strides = {10, 1}, .offset = 4};
  EXPECT_EQ(places(columns), (std::vector<u64>{4, 14, 5, 15, 6, 16}));
  EXPECT_EQ(columns.reach(), 17u);
  EXPECT_EQ(places({.extents = {3}}), (std::vector<u64>{0, 1, 2}));
}

TEST(StridedLayout, of_nothing_needs_nothing) {
  auto const grid = StridedLayout::dense({4, 3, 2});
  auto const none = grid.subarray({4, 0, 2}, {0, 3, 0});
  EXPECT_TRUE(none.valid());
  EXPECT_EQ(none.volume(), 0u);
  EXPECT_EQ(none.reach(), 0u);
  EXPECT_TRUE(none.is_unique());
}

TEST(StridedLayout, that_leaves_its_bounds_is_invalid_and_stays_so) {
  auto const grid = StridedLayout::dense({4, 3, 2});
  for (auto const& part :
       {grid.subarray({4, 0, 0}, {1, 3, 2}), grid.subarray({0, 0, 0}, {4, 4, 2}),
        grid.subarray({0, 0, huge}, {4, 3, 2}), grid.subarray({0, 0, 1}, {4, 3, huge})}) {
    EXPECT_FALSE(part.valid());
    EXPECT_FALSE(part.subarray({}, {0, 0, 0}).valid());
  }
  EXPECT_FALSE(StridedLayout::dense({u64{1} << 32, u64{1} << 32}).valid());
  EXPECT_FALSE(StridedLayout::dense({3, huge / 2, 1}).valid());
}

TEST(StridedLayout, does_not_wrap_round) {
  EXPECT_EQ((StridedLayout{.extents = {3}, .strides = {huge / 2}}.reach()), huge);
  EXPECT_EQ((StridedLayout{.extents = {2, 2}, .strides = {huge / 2, huge / 2 + 5}}.reach()), huge);
  EXPECT_EQ((StridedLayout{.extents = {2}, .offset = huge - 1}.reach()), huge);
  EXPECT_EQ((StridedLayout{.extents = {u64{1} << 40, u64{1} << 40}}.volume()), huge);
  EXPECT_EQ((StridedLayout{.extents = {1, 4}, .strides = {huge, 2}}.reach()), 7u);
}

TEST(StridedLayout, that_is_called_unique_names_no_place_twice) {
  std::mt19937 random(7);
  auto const below = [&](u64 limit) { return random() % limit; };
  u32 unique = 0;
  for (u32 i = 0; i < 20'000; ++i) {
    StridedLayout const layout{.extents = {below(4), below(4), below(4)},
                               .strides = {below(9), below(9), below(20)}};
    auto const all = places(layout);
    bool const once = std::set(all.begin(), all.end()).size() == all.size();
    if (!layout.is_unique()) continue;
    EXPECT_TRUE(once);
    ++unique;
  }
  EXPECT_GT(unique, 3000u);
}

TEST(StridedLayout, whose_elements_lie_on_each_other_is_not_unique) {
  EXPECT_FALSE((StridedLayout{.extents = {2}, .strides = {0}}.is_unique()));
  EXPECT_FALSE((StridedLayout{.extents = {4, 2}, .strides = {1, 3}}.is_unique()));
  EXPECT_FALSE((StridedLayout{.extents = {2, 1, 2}, .strides = {5, 0, 5}}.is_unique()));
  EXPECT_TRUE((StridedLayout{.extents = {1, 2, 2}, .strides = {0, 4, 1}}.is_unique()));
}

}  // namespace
}  // namespace meshpost
