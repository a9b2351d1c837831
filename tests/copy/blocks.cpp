// Blocks of rows with pitches: every row arrives, and the gaps do not change.
#include <cstring>

#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::all_places;
using test::error_of;
using test::Memory;
using test::random_data;
using test::says;

u64 extent(Pitch pitch, BlockShape shape) {
  return (shape.slices - 1) * pitch.slice + (shape.rows - 1) * pitch.row + shape.width;
}

void check_block(test::Where from, test::Where to, BlockShape shape, Pitch source_pitch,
                 Pitch target_pitch, std::mt19937_64& random) {
  Memory source(from, extent(source_pitch, shape) + 8), target(to, extent(target_pitch, shape) + 8);
  auto const bytes = random_data(random, source.size());
  std::vector<u8> wanted(target.size(), 0xa5);
  source.put(bytes), target.put(wanted);
  for (u64 s = 0; s < shape.slices; ++s)
    for (u64 r = 0; r < shape.rows; ++r)
      std::memcpy(wanted.data() + 3 + s * target_pitch.slice + r * target_pitch.row,
                  bytes.data() + 5 + s * source_pitch.slice + r * source_pitch.row, shape.width);
  copy_async(target.data() + 3, target_pitch, source.data() + 5, source_pitch, shape).wait();
  ASSERT_TRUE(target.get() == wanted)
      << from.name() << " to " << to.name() << ": " << shape.slices << " x " << shape.rows << " x "
      << shape.width.value << ", pitches " << source_pitch.row.value << " "
      << target_pitch.row.value;
}

TEST(Blocks, between_all_pairs_of_places_arrive_row_by_row) {
  std::mt19937_64 random(test::new_seed());
  for (auto const& from : all_places())
    for (auto const& to : all_places())
      for (int i = 0; i < 6; ++i) {
        BlockShape const shape{Bytes{1 + random() % 300}, 1 + random() % 40, 1 + random() % 4};
        auto const pitch = [&] {
          u64 const row = shape.width + random() % 3 * (random() % 50);
          // The distance of slices: whole rows, or any number of bytes.
          u64 const slice = i % 2 ? row * (shape.rows + random() % 3)
                                  : (shape.rows - 1) * row + shape.width + random() % 99;
          return Pitch{Bytes{row}, Bytes{slice}};
        };
        auto const one = pitch(), other = pitch();
        check_block(from, to, shape, one, other, random);
      }
}

TEST(Blocks, large_ones_arrive_too) {
  std::mt19937_64 random(test::new_seed());
  auto const places = all_places();
  for (auto const& from : {places[0], places[1], places.back()})
    for (auto const& to : {places[0], places[1]}) {
      check_block(from, to, {Bytes{1500}, 2000, 2}, {Bytes{2000}, Bytes{4'000'000}},
                  {Bytes{1600}, Bytes{3'200'001}}, random);
      check_block(from, to, {Bytes{1'500'000}, 3, 1}, {Bytes{1'500'001}, {}},
                  {Bytes{1'600'000}, {}}, random);
      check_block(from, to, {Bytes{1000}, 2000, 2}, {Bytes{1000}, Bytes{2'000'000}},
                  {Bytes{1000}, Bytes{2'000'000}}, random);
    }
}

TEST(Blocks, within_one_matrix_may_interleave_but_not_overlap) {
  Memory matrix({0, MemoryKind::device, false}, 100);
  std::vector<u8> bytes(100);
  for (u8 i = 0; i < 100; ++i) bytes[i] = i;
  matrix.put(bytes);
  Pitch const row{Bytes{10}, {}};
  // Copies the left half of each row to the right half.
  copy_async(matrix.data() + 5, row, matrix.data(), row, {Bytes{5}, 10}).wait();
  for (u64 i = 0; i < 100; ++i) bytes[i] = static_cast<u8>(i / 10 * 10 + i % 5);
  EXPECT_EQ(matrix.get(), bytes);
  EXPECT_TRUE(says(
      error_of([&] { copy_async(matrix.data() + 4, row, matrix.data(), row, {Bytes{5}, 10}); }),
      Kind::bad_argument, {"1 x 10 rows of 5 bytes", "overlap"}));
}

TEST(Blocks, with_pitches_that_are_too_small_or_absurd_are_refused) {
  std::vector<u8> a(1000), b(1000);
  auto const refuses = [&](Pitch target, Pitch source, BlockShape shape,
                           std::initializer_list<std::string_view> pieces) {
    EXPECT_TRUE(says(error_of([&] { copy_async(a.data(), target, b.data(), source, shape); }),
                     Kind::bad_argument, pieces));
  };
  Pitch const fine{Bytes{10}, Bytes{100}};
  refuses({Bytes{7}, Bytes{100}}, fine, {Bytes{8}, 2, 1},
          {"the target's row pitch of 7", "row of 8"});
  refuses(fine, {Bytes{7}, Bytes{100}}, {Bytes{8}, 2, 1}, {"the source's row pitch of 7"});
  refuses(fine, {Bytes{10}, Bytes{17}}, {Bytes{8}, 2, 2},
          {"the source's slice pitch of 17", "of 18"});
  refuses({Bytes{u64{1} << 61}, {}}, fine, {Bytes{8}, 9, 1}, {"larger than any memory"});
  refuses(fine, fine, {Bytes{u64{1} << 63}, 1, 1}, {"not all of them are mapped"});
}

}  // namespace
}  // namespace meshpost
