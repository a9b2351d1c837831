// Distributions: each element has one part and one place, and the way back leads to it.
#include <meshpost/array/distribution.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "array/refused.hpp"

namespace meshpost {
namespace {

using test::expect_refused;

// Each part's places are 0, 1, and so on, without a gap.
void expect_whole(Distribution const& distribution) {
  SCOPED_TRACE(distribution.describe());
  std::vector<std::vector<bool>> seen(distribution.parts());
  u64 sum = 0;
  for (u32 part = 0; part < distribution.parts(); ++part) {
    seen[part].resize(distribution.size_of(part));
    sum += distribution.size_of(part);
  }
  ASSERT_EQ(sum, distribution.size());
  for (u64 index = 0; index < distribution.size(); ++index) {
    u32 const part = distribution.owner_of(index);
    u64 const place = distribution.place_of(index);
    ASSERT_LT(part, distribution.parts());
    ASSERT_LT(place, seen[part].size()) << index;
    ASSERT_FALSE(seen[part][place]) << index;
    seen[part][place] = true;
    ASSERT_EQ(distribution.index_of(part, place), index);
    if (auto const begin = distribution.begin_of(part)) {
      ASSERT_EQ(*begin + place, index);
    }
  }
}

TEST(Distribution, gives_each_element_one_part_and_one_place) {
  std::mt19937_64 random{std::random_device{}()};
  for (int round = 0; round < 300; ++round) {
    u64 const size = random() % 4 == 0 ? random() % 4 : random() % 500;
    auto const parts = static_cast<u32>(1 + random() % 9);
    expect_whole(Distribution::block(size, parts));
    expect_whole(Distribution::cyclic(size, parts));
    expect_whole(Distribution::cyclic(size, parts, 1 + random() % 40));
    std::vector<double> shares(parts);
    for (auto& share : shares) share = random() % 3 == 0 ? 0 : static_cast<double>(random() % 1000);
    shares[random() % parts] += 0.5;
    expect_whole(Distribution::block(size, shares));
    std::vector<u32> owners(size);
    for (auto& owner : owners) owner = static_cast<u32>(random() % parts);
    expect_whole(Distribution::general(owners, parts));
    Extents3 const grid{parts, 1 + random() % 7, 1 + random() % 7};
    expect_whole(Distribution::boxes(Boxes::cut(grid, shares)));
  }
}

TEST(Distribution, cuts_blocks_into_sizes_that_differ_by_one) {
  auto const ten = Distribution::block(10, 4);
  EXPECT_EQ(ten.size_of(0), 3u);
  EXPECT_EQ(ten.size_of(1), 3u);
  EXPECT_EQ(ten.size_of(2), 2u);
  EXPECT_EQ(ten.size_of(3), 2u);
  EXPECT_EQ(ten.describe(), "block: 10 elements in 4 parts of 2 to 3");
}

TEST(Distribution, cuts_blocks_in_proportion) {
  std::mt19937_64 random{std::random_device{}()};
  for (int round = 0; round < 200; ++round) {
    std::vector<double> shares(1 + random() % 8);
    double sum = 0;
    for (auto& share : shares) sum += share = static_cast<double>(random() % 5) + 1e-3;
    u64 const size = random() % 100'000;
    auto const cut = Distribution::block(size, shares);
    for (u32 part = 0; part < shares.size(); ++part)
      EXPECT_LE(std::abs(static_cast<double>(cut.size_of(part)) -
                         static_cast<double>(size) * shares[part] / sum),
                1.0 + 1e-6);
  }
  double const shares[] = {0, 1, 0, 3, 0};
  auto const cut = Distribution::block(7, shares);
  EXPECT_EQ(cut.size_of(0) + cut.size_of(2) + cut.size_of(4), 0u) << "a share of 0 gets nothing";
  EXPECT_EQ(cut.size_of(1), 2u);
}

TEST(Distribution, deals_blocks_in_turn) {
  auto const dealt = Distribution::cyclic(11, 2, 3);  // 0-2, 6-8 and 3-5, 9-10
  EXPECT_EQ(dealt.size_of(0), 6u);
  EXPECT_EQ(dealt.size_of(1), 5u);
  EXPECT_EQ(dealt.owner_of(8), 0u);
  EXPECT_EQ(dealt.place_of(8), 5u);
  EXPECT_EQ(dealt.index_of(1, 4), 10u);
  EXPECT_FALSE(dealt.begin_of(0).has_value());
}

TEST(Distribution, is_equal_to_another_that_puts_all_elements_in_the_same_places) {
  EXPECT_EQ(Distribution::cyclic(20, 2, 10), Distribution::block(20, 2));
  EXPECT_EQ(Distribution::general({0, 1, 0}, 2), Distribution::cyclic(3, 2));
  EXPECT_FALSE(Distribution::block(20, 2) == Distribution::cyclic(20, 2));
  auto const cubes = Distribution::boxes(Boxes::cut({4, 4, 4}, 4));
  std::set<u64> const fingerprints = {Distribution::block(20, 2).fingerprint(),
                                      Distribution::block(20, 4).fingerprint(),
                                      Distribution::cyclic(20, 2).fingerprint(),
                                      Distribution::cyclic(20, 2, 3).fingerprint(),
                                      Distribution::general({0, 1, 1}, 2).fingerprint(),
                                      Distribution::general({0, 1, 0}, 2).fingerprint(),
                                      Distribution::general({0, 1, 0}, 3).fingerprint(),
                                      cubes.fingerprint(),
                                      Distribution::block(64, 4).fingerprint(),
                                      Distribution::boxes(Boxes::cut({64}, 4)).fingerprint()};
  EXPECT_EQ(fingerprints.size(), 10u);
  EXPECT_EQ(Distribution::block(20, 4).fingerprint(), Distribution::block(20, 4).fingerprint());
  EXPECT_FALSE(Distribution::block(20, 2) == Distribution::block(20, 4));
  EXPECT_EQ(cubes, Distribution::boxes(Boxes::cut({4, 4, 4}, 4)));
  EXPECT_EQ(Distribution::boxes(Boxes::cut({4, 4, 4}, 4, {.dimensions = 1})),
            Distribution::block(64, 4));
  EXPECT_FALSE(cubes == Distribution::block(64, 4));
  EXPECT_FALSE(Distribution::block(20, 2) == Distribution::block(21, 2));
}

TEST(Distribution, refuses_what_is_none) {
  expect_refused([] { Distribution::block(3, 0); }, {"Distribution::block", "0 parts"});
  expect_refused([] { Distribution::block(3, std::span<double const>()); }, {"0 parts"});
  for (double const bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    double const shares[] = {1, bad};
    expect_refused([&] { Distribution::block(3, shares); }, {"share of part 1 is"});
  }
  double const nothing[] = {0, 0};
  expect_refused([&] { Distribution::block(3, nothing); }, {"shares of 2 parts add up to 0"});
  expect_refused([] { Distribution::cyclic(3, 0); }, {"Distribution::cyclic", "0 parts"});
  expect_refused([] { Distribution::cyclic(3, 2, 0); }, {"blocks of 0 elements"});
  expect_refused([] { Distribution::general({0, 2}, 2); },
                 {"element 1 belongs to part 2", "2 parts"});
  auto const three = Distribution::block(3, 2);
  expect_refused([&] { three.owner_of(3); }, {"no element 3", "has 3"});
  expect_refused([&] { three.place_of(7); }, {"no element 7"});
  expect_refused([&] { three.size_of(2); }, {"no part 2", "has 2"});
  expect_refused([&] { three.index_of(1, 1); }, {"no place 1 in part 1, which has 1"});
  expect_refused([&] { three.begin_of(9); }, {"no part 9"});
}

}  // namespace
}  // namespace meshpost
