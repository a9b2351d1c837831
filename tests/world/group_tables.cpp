#include "meshpost/world/group_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace meshpost {
namespace {

void check(std::vector<i64> const& colors, u32 each) {
  auto const tables = make_groups(colors, each);
  ASSERT_EQ(tables.groups.size(), colors.size());
  std::set<i64> distinct;
  for (i64 const color : colors)
    if (color >= 0) distinct.insert(color);
  EXPECT_EQ(tables.group_count, distinct.size());
  for (u32 rank = 0; rank < colors.size(); ++rank) {
    Group const& group = tables.groups[rank];
    if (colors[rank] < 0) {
      EXPECT_EQ(group.size, 0u);
      continue;
    }
    std::vector<u32> members;
    std::set<u32> devices;
    u32 local = 0;
    for (u32 other = 0; other < colors.size(); ++other)
      if (colors[other] == colors[rank]) {
        members.push_back(other);
        devices.insert(other / each);
        local += other / each == rank / each;
      }
    EXPECT_EQ(group.size, members.size());
    EXPECT_EQ(group.local_size, local);
    EXPECT_EQ(group.devices, devices.size());
    EXPECT_EQ(members.at(group.index), rank);
    auto const same_device = [&](u32 other) { return other / each == rank / each; };
    EXPECT_EQ(group.local_first, std::ranges::find_if(members, same_device) - members.begin());
    EXPECT_EQ(tables.places.at(group.places + group.place), rank / each);
    EXPECT_LT(group.number, tables.group_count);
    for (u32 i = 0; i < group.size; ++i) {
      EXPECT_EQ(tables.members.at(group.members + i), members[i]);
      EXPECT_EQ(tables.groups[members[i]].number, group.number);
    }
    EXPECT_EQ(std::set<u32>(tables.places.begin() + group.places,
                            tables.places.begin() + group.places + group.devices),
              devices);
  }
}

TEST(Groups, hold_ranks_of_equal_color_in_their_order) {
  check({0, 1, 0, 1, 0, 1}, 3);
  check({7, 7, 7, 7}, 2);
  check({-1, 5, -1, 5}, 1);
  check({-1, -2, -3}, 3);
  check({3, 2, 1, 0}, 4);
  check({i64{1} << 62, 0, i64{1} << 62, 0}, 2);
  check({}, 1);
}

TEST(Groups, of_random_colors_are_complete) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    u32 const each = 1 + static_cast<u32>(random() % 9),
              devices = 1 + static_cast<u32>(random() % 5);
    std::vector<i64> colors(each * devices);
    for (auto& color : colors) color = static_cast<i64>(random() % 6) - 1;
    check(colors, each);
  }
}

}  // namespace
}  // namespace meshpost
