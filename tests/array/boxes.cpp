// Grids cut into boxes: each cell is in one, sizes are in proportion, and bad cuts are refused.
#include <meshpost/array/boxes.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "array/refused.hpp"

namespace meshpost {
namespace {

using test::expect_refused;

// By a count of all cells, not by what Boxes::of checks.
void expect_cover(Boxes const& boxes) {
  SCOPED_TRACE(boxes.describe());
  Box const grid = boxes.grid();
  std::vector<u32> found(grid.cells(), ~0u);
  for (u32 part = 0; part < boxes.parts(); ++part) {
    Box const& box = boxes.box(part);
    for (u64 place = 0; place < box.cells(); ++place) {
      Cell const cell = box.cell_at(place);
      ASSERT_TRUE(grid.contains(cell));
      ASSERT_EQ(box.place_of(cell), place);
      ASSERT_EQ(found[grid.place_of(cell)], ~0u) << "two have cell " << grid.place_of(cell);
      found[grid.place_of(cell)] = part;
    }
  }
  for (u64 index = 0; index < found.size(); ++index)
    ASSERT_EQ(boxes.owner_of(grid.cell_at(index)), found[index]);
}

TEST(Boxes, cut_a_grid_of_any_size_for_any_number_of_parts) {
  std::mt19937_64 random{std::random_device{}()};
  for (int round = 0; round < 500; ++round) {
    Extents3 const grid{1 + random() % 9, 1 + random() % 9, 1 + random() % 9};
    u64 const cells = grid.x * grid.y * grid.z;
    auto const parts = static_cast<u32>(1 + random() % std::min<u64>(cells, 40));
    auto const boxes = Boxes::cut(grid, parts);
    expect_cover(boxes);
    expect_cover(Boxes::cut(grid, static_cast<u32>(cells - random() % std::min<u64>(3, cells))));
    std::vector<double> shares(parts);
    for (auto& share : shares) share = random() % 3 == 0 ? 0 : static_cast<double>(random() % 100);
    shares[random() % parts] += 1e-6;
    auto const uneven = Boxes::cut(grid, shares);
    expect_cover(uneven);
    for (u32 part = 0; part < parts; ++part)
      ASSERT_EQ(uneven.box(part).empty(), shares[part] == 0) << uneven.describe();
    std::vector<Box> all;
    for (u32 part = 0; part < parts; ++part) all.push_back(boxes.box(part));
    EXPECT_EQ(Boxes::of(grid, all), boxes);
    std::set<u32> near, expected;
    Box const looked = boxes.box(0).grown(Sides::all(static_cast<u32>(random() % 3)));
    boxes.each_in(looked, [&](u32 part) { near.insert(part); });
    for (u32 part = 0; part < parts; ++part)
      if (!looked.intersect(boxes.box(part)).empty()) expected.insert(part);
    ASSERT_EQ(near, expected);
  }
}

TEST(Boxes, are_cubes_for_a_power_of_two_and_halved_at_the_slowest_dimension_first) {
  auto const eight = Boxes::cut({8, 8, 8}, 8);
  for (u32 part = 0; part < 8; ++part) {
    i64 const x = part % 2 * 4, y = part / 2 % 2 * 4, z = part / 4 * 4;
    EXPECT_EQ(eight.box(part), (Box{{x, y, z}, {x + 4, y + 4, z + 4}}));
  }
  auto const two = Boxes::cut({8, 8, 8}, 2);
  EXPECT_EQ(two.box(1), (Box{{0, 0, 4}, {8, 8, 8}}));
  EXPECT_EQ(two.describe(), "8 x 8 x 8 cells in 2 boxes of 256");
  EXPECT_EQ(Boxes::cut({9, 4}, 2).box(0), (Box{{0, 0, 0}, {5, 4, 1}})) << "the longest";
}

TEST(Boxes, are_slabs_if_one_dimension_is_cut) {
  auto const slabs = Boxes::cut({90, 5, 11}, 3, {.dimensions = 1});
  for (u32 part = 0; part < 3; ++part) {
    EXPECT_EQ(slabs.box(part).extent(0) * slabs.box(part).extent(1), 450u);
    EXPECT_NEAR(static_cast<double>(slabs.box(part).extent(2)), 11.0 / 3, 1);
  }
  EXPECT_EQ(Boxes::cut({90, 5}, 5, {.dimensions = 1}).box(4), (Box{{0, 4, 0}, {90, 5, 1}}));
  EXPECT_EQ(Boxes::cut({90, 5, 11}, 4, {.dimensions = 2}).box(3).extent(0), 90u);
}

TEST(Boxes, are_in_proportion) {
  double const shares[] = {3, 0, 1};
  auto const boxes = Boxes::cut({10, 10, 100}, shares);
  EXPECT_EQ(boxes.box(0), (Box{{0, 0, 0}, {10, 10, 75}}));
  EXPECT_TRUE(boxes.box(1).empty());
  EXPECT_EQ(boxes.box(2).cells(), 2500u);
  double const tiny[] = {1e-9, 1};
  EXPECT_EQ(Boxes::cut({4, 4, 4}, tiny).box(0).cells(), 16u) << "at least a layer";
}

TEST(Boxes, have_a_number_and_grow_and_shrink) {
  auto const four = Boxes::cut({4, 4}, 4), slabs = Boxes::cut({4, 4}, 4, {.dimensions = 1});
  EXPECT_EQ(four, Boxes::cut({4, 4}, 4));
  EXPECT_FALSE(four == slabs);
  EXPECT_FALSE(Boxes::cut({4, 4}, 1) == Boxes::cut({4, 1, 4}, 1));
  EXPECT_NE(four.fingerprint(), slabs.fingerprint());
  EXPECT_NE(four.fingerprint(), Boxes::cut({4, 5}, 4).fingerprint());
  EXPECT_EQ(four.fingerprint(), Boxes::cut({4, 4}, 4).fingerprint());
  Box const box{{1, 1, 0}, {3, 4, 1}};
  EXPECT_EQ(box.grown({{1, 0, 0}, {0, 2, 0}}), (Box{{0, 1, 0}, {3, 6, 1}}));
  EXPECT_EQ(box.shrunk({{1, 0, 0}, {0, 2, 0}}), (Box{{2, 1, 0}, {3, 2, 1}}));
  EXPECT_TRUE(box.shrunk(Sides::all(1)).empty());
  EXPECT_TRUE(Box().grown(Sides::all(3)).empty());
}

TEST(Boxes, refuse_what_is_no_cut) {
  expect_refused([] { Boxes::cut({3, 0, 2}, 1); },
                 {"Boxes::cut", "3 x 0 x 2", "at least one cell in each dimension"});
  expect_refused([] { Boxes::cut({u64{1} << 31, u64{1} << 31}, 1); }, {"2^62 are too many"});
  expect_refused([] { Boxes::cut({~u64{0}, ~u64{0}, 3}, 1); }, {"2^62 are too many"});
  expect_refused([] { Boxes::cut({3, 3}, 0); }, {"0 parts"});
  expect_refused([] { Boxes::cut({3, 3}, 10); },
                 {"10 parts of a grid of 3 x 3 x 1 cells", "it has 9 at most", "fewer parts"});
  expect_refused([] { Boxes::cut({9, 3}, 4, {.dimensions = 1}); },
                 {"cut in 1 dimension, it has 3 at most"});
  expect_refused([] { Boxes::cut({9, 3}, 1, {.dimensions = 4}); }, {"cuts in 4 dimensions"});
  for (double const bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    double const shares[] = {1, bad};
    expect_refused([&] { Boxes::cut({3, 3}, shares); }, {"share of part 1 is"});
  }
  double const nothing[] = {0, 0};
  expect_refused([&] { Boxes::cut({3, 3}, nothing); }, {"shares of 2 parts add up to 0"});
  auto const of = [](std::vector<Box> boxes) { Boxes::of({4, 3}, std::move(boxes)); };
  expect_refused([&] { of({}); }, {"Boxes::of", "no boxes"});
  expect_refused([&] { of({Box::of({4, 3}), {{0, 0, 0}, {5, 3, 1}}}); },
                 {"box of part 1, (0, 0, 0) to (5, 3, 1), leaves the grid of 4 x 3 x 1"});
  expect_refused([&] { of({{{0, 0, 0}, {4, 2, 1}}, {}, {{2, 1, 0}, {4, 3, 1}}}); },
                 {"boxes of parts 0 and 2 overlap"});
  expect_refused([&] { of({{{0, 0, 0}, {4, 2, 1}}, {{0, 2, 0}, {3, 3, 1}}}); },
                 {"no box has cell (3, 2, 0); 1 of 12 cells", "cover the grid"});
  auto const boxes = Boxes::cut({4, 3}, 2);
  expect_refused([&] { static_cast<void>(boxes.owner_of({4, 0, 0})); }, {"no cell (4, 0, 0)"});
  expect_refused([&] { static_cast<void>(boxes.box(2)); }, {"no part 2"});
}

}  // namespace
}  // namespace meshpost
