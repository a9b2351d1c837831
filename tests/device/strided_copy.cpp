#include "meshpost/device/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/bytes.hpp"

namespace meshpost {
namespace {

StridedLayout const grid = StridedLayout::dense({8, 6, 4});

StridedCopy plan(StridedLayout const& to, StridedLayout const& from, u64 element = 8) {
  static char target[4096], source[4096];
  return plan_strided_copy(target, to, source, from, element);
}

TEST(StridedCopy, of_a_whole_grid_is_one_run) {
  EXPECT_EQ(plan(grid, grid).loops, 0u);
  EXPECT_EQ(plan(grid, grid).run, 8u * 8 * 6 * 4);
  auto const plane = grid.subarray({0, 0, 2}, {8, 6, 1});
  EXPECT_EQ(plan(StridedLayout::dense({8, 6}), plane).loops, 0u);
}

TEST(StridedCopy, of_rows_has_them_as_runs) {
  auto const face = grid.subarray({0, 5, 0}, {8, 1, 4});
  auto const copy = plan(StridedLayout::dense(face.extents), face);
  EXPECT_EQ(copy.run, 64u);
  EXPECT_EQ(copy.loops, 1u);
  EXPECT_EQ(copy.loop[0].count, 4u);
}

TEST(StridedCopy, of_an_x_face_is_one_loop_for_its_planes_follow_each_other) {
  auto const face = grid.subarray({7, 0, 0}, {1, 6, 4});
  auto const copy = plan(StridedLayout::dense(face.extents), face);
  EXPECT_EQ(copy.run, 8u);
  EXPECT_EQ(copy.loops, 1u);
  EXPECT_EQ(copy.loop[0].count, 24u);
}

TEST(StridedCopy, goes_through_the_target_in_order) {
  StridedLayout const transposed{.extents = {3, 5}, .strides = {5, 1}};
  auto const copy = plan(transposed, StridedLayout::dense({3, 5}));
  EXPECT_EQ(copy.loop[0].count, 5u);
  EXPECT_EQ(copy.loop[0].target, 8u);
  EXPECT_EQ(copy.loop[0].source, 24u);
}

TEST(StridedCopy, of_nothing_has_no_bytes) {
  StridedLayout const none{.extents = {3, 0, 2}};
  EXPECT_EQ(plan(none, none).bytes(), 0u);
  EXPECT_EQ(plan(none, none).runs(), 0u);
}

TEST(StridedCopy, of_one_element_ignores_its_strides) {
  StridedLayout const one{.extents = {}, .strides = {77, 0, ~u64{0}}};
  EXPECT_EQ(plan(one, one).loops, 0u);
  EXPECT_EQ(plan(one, one).run, 8u);
}

// Any layouts, by any number of threads, against three loops.
TEST(StridedCopy, moves_each_element_once_whatever_the_layouts) {
  std::mt19937_64 random(11);
  auto const below = [&](u64 limit) { return random() % limit; };
  for (u32 round = 0; round < 3000; ++round) {
    u64 const sizes[] = {1, 2, 3, 4, 8, 12, 16, 24};
    u64 const element = sizes[below(8)];
    Extents3 const extents{below(6), below(6), below(6)};
    auto const layout = [&] {
      u64 const counts[] = {extents.x, extents.y, extents.z};
      u64 order[] = {0, 1, 2}, strides[3], next = 1;
      std::shuffle(order, order + 3, random);
      for (u64 const d : order) {
        strides[d] = next + (below(2) == 0 ? 0 : below(4));
        next = strides[d] * std::max<u64>(counts[d], 1);
      }
      return StridedLayout{extents, {strides[0], strides[1], strides[2]}, below(7)};
    };
    auto const to = layout(), from = layout();
    ASSERT_TRUE(to.is_unique());
    auto const source = test::random_data<std::vector<char>>(random, (from.reach() + 1) * element);
    std::vector<char> target((to.reach() + 1) * element, 'x');
    auto expected = target;
    for (u64 k = 0; k < extents.z; ++k)
      for (u64 j = 0; j < extents.y; ++j)
        for (u64 i = 0; i < extents.x; ++i) {
          auto const at = [&](StridedLayout const& l) {
            return (l.offset + i * l.strides.x + j * l.strides.y + k * l.strides.z) * element;
          };
          std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(at(from)), element,
                      expected.begin() + static_cast<std::ptrdiff_t>(at(to)));
        }
    auto const copy = plan_strided_copy(target.data(), to, source.data(), from, element);
    EXPECT_EQ(copy.bytes(), to.volume() * element);
    u32 const threads = static_cast<u32>(1 + below(40));
    for (u32 thread = 0; copy.run != 0 && thread < threads; ++thread)
      memory::copy(copy, thread, threads);
    ASSERT_EQ(target, expected) << "round " << round;
    auto by_runs = expected;
    std::fill(by_runs.begin(), by_runs.end(), 'x');
    char const* last = nullptr;
    copy.each_run([&](char* run, char const* bytes) {
      EXPECT_TRUE(!last || run > last);
      last = run;
      std::copy_n(bytes, copy.run, by_runs.data() + (run - target.data()));
    });
    ASSERT_EQ(by_runs, expected);
  }
}

}  // namespace
}  // namespace meshpost
