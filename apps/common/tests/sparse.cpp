#include <gmock/gmock.h>

#include <numeric>

#include "common/sparse/matrix_market.hpp"
#include "common/sparse/problem.hpp"

namespace meshpost::apps::sparse {
namespace {

using testing::Each, testing::ElementsAre, testing::HasSubstr, testing::ThrowsMessage;

// -- Matrix Market files

std::vector<std::vector<double>> dense(Csr const& matrix) {
  std::vector<std::vector<double>> rows(matrix.rows, std::vector<double>(matrix.columns));
  for (u32 row = 0; row < matrix.rows; ++row)
    for (u64 k = matrix.begin[row]; k < matrix.begin[row + 1]; ++k)
      rows[row][matrix.column[k]] += matrix.value[k];
  return rows;
}

Csr parse(std::string const& text) { return parse_matrix_market(text, "a.mtx"); }

TEST(MatrixMarket, reads_entries_in_any_order_and_adds_those_of_one_place) {
  auto const matrix = parse(
      "%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 2 4\n"
      "3 2 1.5\n1 1 -2e0\n\n  3   1 +4\r\n3 2 1\n");
  EXPECT_THAT(dense(matrix),
              ElementsAre(ElementsAre(-2, 0), ElementsAre(0, 0), ElementsAre(4, 2.5)));
  EXPECT_THAT(matrix.begin, ElementsAre(0, 1, 1, 3));
}

TEST(MatrixMarket, fills_in_the_other_half_of_symmetric_matrices) {
  EXPECT_THAT(dense(parse("%%MatrixMarket MATRIX Coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n")),
              ElementsAre(ElementsAre(1, 1), ElementsAre(1, 0)));
  EXPECT_THAT(dense(parse("%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 7")),
              ElementsAre(ElementsAre(0, -7), ElementsAre(7, 0)));
}

TEST(MatrixMarket, names_the_line_and_what_is_wrong) {
  std::string const header = "%%MatrixMarket matrix coordinate real general\n";
  std::vector<std::pair<std::string, std::string>> const all = {
      {"", "a.mtx, line 1: the file is empty; begin the file with \"%%MatrixMarket matrix coord"},
      {"1 1 1\n", "line 1: it does not begin with %%MatrixMarket, but with \"1 1 1\"; begin the"},
      {"\x7f"
       "ELF\n1 1 1\n",
       "line 1: it does not begin with %%MatrixMarket; begin"},
      {"%%MatrixMarket vector coordinate real general\n", "line 1: \"vector\" is no matrix"},
      {"%%MatrixMarket matrix array real general\n", "line 1: \"array\" is no format"},
      {"%%MatrixMarket matrix coordinate complex general\n", "line 1: \"complex\" is no field"},
      {"%%MatrixMarket matrix coordinate real hermitian\n", "line 1: \"hermitian\" is no symmetry"},
      {header, "line 1: there is no line with the sizes"},
      {header + "2 2\n", "line 2: there is no number of entries"},
      {header + "2 -2 1\n", "line 2: \"-2\" is no number of columns"},
      {header + "2 2 1 9\n", "line 2: \"9\" follows the last number"},
      {header + "9999999999 2 1\n", "9999999999 x 2 is too large"},
      {header + "2 2 2\n1 1 1\n",
       "line 3: the file ends after 1 of 2 entries; it may be cut: get it again, or correct "
       "the number of entries in line 2"},
      {header + "2 2 1\n1 1 1\n2 2 1\n",
       "line 4: there are more entries than the 1 of the size line; correct the number of "
       "entries in line 2"},
      {header + "2 2 1\n%\n3 1 1\n",
       "line 4: row 3 in \"3 1 1\" is not from 1 to 2; numbers of rows"},
      {header + "2 2 1\n1 0 1\n", "line 3: column 0 in \"1 0 1\" is not from 1 to 2"},
      {header + "2 2 1\n1 1\n",
       "line 3: there is no number in \"1 1\"; give each entry a row, a column and a value, such "
       "as \"2 1 -0.5\"; the file may be cut"},
      {header + "2 2 1\n1 1 x\n", "line 3: \"x\" is no number in \"1 1 x\"; give each entry"},
      {header + "2 2 1\n1 1 NaN\n",
       "line 3: the value is not finite in \"1 1 NaN\"; give finite numbers"},
      {header + "2 2 1\n1 1 inf\n", "line 3: the value is not finite"},
      {header + "2 2 1\n1 1 1e999\n", "line 3: \"1e999\" is no number"},
      {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
       "line 3: a skew-symmetric matrix has no entries on its diagonal"},
      {"%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1\n",
       "line 2: 3 x 2 can't be symmetric; give as many rows as columns"},
      {"%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 2 4\n1 1 1\n2 1 4\n",
       "line 3: entry (1, 2) is the mirror of (2, 1) in line 5; give one of the two"},
  };
  for (auto const& [text, message] : all)
    EXPECT_THAT(([&text = text] { parse(text); }), ThrowsMessage<Error>(HasSubstr(message)))
        << text;
  for (char const* const file : {"/none.mtx", "/"})
    EXPECT_THAT([=] { read_matrix_market(file); },
                ThrowsMessage<Error>(HasSubstr(std::string(file) + ": it can't be read")));
}

TEST(MatrixMarket, counts_places_with_several_entries) {
  std::string const general = "%%MatrixMarket matrix coordinate real general\n";
  auto const matrix = parse(general + "2 2 6\n1 1 1\n2 2 3\n1 1 1\n1 1 5\n2 1 1\n2 2 4\n");
  EXPECT_EQ(matrix.repeated, 2u);
  EXPECT_THAT(matrix.value, ElementsAre(7, 1, 7));
  // Entries in both triangles are not repeated if no two are mirrors.
  auto const mixed =
      parse("%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 2 4\n3 1 5\n3 3 1\n");
  EXPECT_EQ(mixed.repeated, 0u);
  EXPECT_EQ(mixed.entries(), 5u);
}

TEST(MatrixMarket, refuses_a_matrix_that_is_not_square_where_it_must_be) {
  std::string const general = "%%MatrixMarket matrix coordinate real general\n";
  auto const square = [&](std::string const& sizes) {
    return [=] { parse_matrix_market(general + sizes, "a.mtx", Shape::square); };
  };
  EXPECT_THAT(square("4 5 0\n"),
              ThrowsMessage<Error>(HasSubstr("a.mtx, line 2: 4 rows and 5 columns are no square")));
  EXPECT_THAT(square("0 0 0\n"), ThrowsMessage<Error>(HasSubstr("line 2: it has no rows")));
  EXPECT_EQ(parse(general + "4 5 0\n").columns, 5u);
}

TEST(Memory, is_refused_before_it_is_used_up) {
  require_memory(1, "--size 1", "1 rows");
  EXPECT_THAT(
      [] { require_memory(1e18, "--size 9", "9 rows"); },
      ThrowsMessage<Error>(HasSubstr("--size 9: 9 rows take 1000000000.0 GB, and this host")));
}

// -- trees over a row or column of devices

TEST(Square, the_trees_reach_all_devices_once_and_none_before_its_sender) {
  for (u32 side = 1; side <= 17; ++side) {
    Square const square{side};
    std::vector<u32> heard(side, 0), sums(side, 1);
    heard[0] = 1;
    for (u32 level = 0; level < square.levels(); ++level)
      for (u32 place = 0; place < side; ++place)
        if (square.sends(place, level)) {
          EXPECT_LE(Square::first_level(place), level);
          EXPECT_EQ(Square::parent(place + (1u << level)), place);
          EXPECT_EQ(heard[place], 1u);
          ++heard[place + (1u << level)];
        }
    EXPECT_THAT(heard, Each(1u));
    for (u32 level = 0; level < square.levels(); ++level)
      for (u32 place = 0; place < side; ++place)
        if (square.gathers(place, level)) {
          EXPECT_EQ(Square::last_level(place + (1u << level)), level);
          sums[place] += sums[place + (1u << level)];
        }
    EXPECT_EQ(sums[0], side);
  }
}

// -- problems

MatrixOptions random_of(u32 size, double density) {
  MatrixOptions options;
  options.size = size;
  options.density = density;
  return options;
}

TEST(Problem, blocks_are_those_of_the_whole_matrix) {
  Problem const problem(random_of(50, 0.1), Square{3}, 4, 2);
  auto const whole = problem.whole();
  EXPECT_EQ(problem.n(), 150u);
  EXPECT_EQ(problem.entries(), whole.entries());
  EXPECT_NEAR(static_cast<double>(problem.entries()), 150 * 150 * 0.1, 150);
  for (u32 device = 0; device < 9; ++device) {
    auto const& square = problem.square();
    auto const expected = cut_out(whole, square.range(square.row_of(device), 150),
                                  square.range(square.column_of(device), 150));
    EXPECT_EQ(problem.block(device).column, expected.column);
    EXPECT_EQ(problem.block(device).value, expected.value);
    EXPECT_EQ(problem.block(device).begin, expected.begin);
  }
}

TEST(Problem, random_rows_have_the_density_that_was_asked_for) {
  Problem const sparse(random_of(10000, 0.00001), Square{1}, 1, 2);
  EXPECT_NEAR(static_cast<double>(sparse.entries()), 1000, 100);
  EXPECT_EQ(Problem(random_of(20, 1), Square{1}, 1, 2).entries(), 400u);
  EXPECT_EQ(Problem(random_of(20, 0), Square{1}, 1, 2).entries(), 0u);
}

TEST(Problem, shares_follow_each_other_and_have_whole_groups_of_rows) {
  for (u32 const ranks : {1u, 3u, 7u, 40u}) {
    Problem const problem(random_of(61, 0.2), Square{2}, ranks, 8);
    for (u32 block = 0; block < 2; ++block) {
      u32 next = 0;
      for (u32 rank = 0; rank < ranks; ++rank) {
        auto const share = problem.share(block, rank);
        EXPECT_EQ(share.first, next);
        EXPECT_LE(share.count(), problem.most_shared_rows());
        EXPECT_TRUE(share.last % 8 == 0 || share.last == 61);
        next = share.last;
      }
      EXPECT_EQ(next, 61u);
    }
  }
}

}  // namespace
}  // namespace meshpost::apps::sparse
