#include "blocks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshpost/base/error.hpp"

namespace pingpong {
namespace {

using testing::HasSubstr;

TEST(Blocks, are_as_close_to_a_cube_as_their_number_allows) {
  EXPECT_EQ(near_cube(1).text(), "1x1x1");
  EXPECT_EQ(near_cube(2).text(), "2x1x1");
  EXPECT_EQ(near_cube(4).text(), "2x2x1");
  EXPECT_EQ(near_cube(7).text(), "7x1x1");
  EXPECT_EQ(near_cube(8).text(), "2x2x2");
  EXPECT_EQ(near_cube(12).text(), "3x2x2");
  EXPECT_EQ(near_cube(64).text(), "4x4x4");
}

TEST(Blocks, have_neighbours_behind_faces_that_face_each_other) {
  Blocks const blocks{3, 2, 4};
  u32 inner = 0;
  for (u32 device = 0; device < blocks.count(); ++device)
    for (u32 face = 0; face < faces; ++face) {
      auto const there = blocks.neighbour(device, face);
      EXPECT_EQ(there.has_value(), (blocks.inner_faces(device) >> face & 1u) != 0);
      if (!there) continue;
      ++inner;
      ASSERT_LT(*there, blocks.count());
      EXPECT_EQ(blocks.neighbour(*there, opposite(face)), device);
      for (u32 axis = 0; axis < 3; ++axis)
        EXPECT_EQ(blocks.place(*there, axis) - blocks.place(device, axis), axis != face / 2 ? 0
                                                                           : face % 2 == 0  ? ~0u
                                                                                            : 1u);
    }
  EXPECT_EQ(inner, 2 * (2 * 2 * 4 + 3 * 1 * 4 + 3 * 2 * 3));
}

TEST(Blocks, are_read_as_they_are_written_and_nothing_else_is) {
  EXPECT_EQ(parse_blocks("3x2x4").text(), "3x2x4");
  EXPECT_EQ(parse_tasks("6,64,1").text(), "6,64,1");
  for (auto const* wrong : {"", "2x2", "2x2x2x2", "0x1x1", "2x2x", "-1x1x1", "2x2x2 ", "2,2,2",
                            "65536x65536x1", "99999999999x1x1"})
    EXPECT_THROW(parse_blocks(wrong), meshpost::Error) << wrong;
  for (auto const* wrong : {"", "1,1", "0,1,1", "7,1,1", "1,65,1", "1,1,7", "1x1x1", "1,1,1,1"})
    try {
      parse_tasks(wrong);
      ADD_FAILURE() << wrong;
    } catch (meshpost::Error const& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("--tasks ") + wrong));
    }
}

TEST(Parts, of_a_whole_follow_each_other_without_gap) {
  for (u64 const count : {0ull, 1ull, 6ull, 17ull})
    for (u32 parts = 1; parts < 9; ++parts) {
      u64 end = 0;
      for (u32 i = 0; i < parts; ++i) {
        EXPECT_EQ(part_of(count, i, parts).begin, end);
        end = part_of(count, i, parts).end;
      }
      EXPECT_EQ(end, count);
    }
}

}  // namespace
}  // namespace pingpong
