#include "lines.hpp"

#include <gtest/gtest.h>

namespace meshpost::launch {
namespace {

std::string forwarded(Lines lines, std::initializer_list<std::string_view> pieces) {
  std::string out;
  for (auto const piece : pieces) lines.add(piece, out);
  lines.end(out);
  return out;
}

TEST(Lines, are_the_same_however_the_bytes_arrive) {
  std::string_view const text = "one\n\ntwo\nthree";
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (std::size_t second = first; second <= text.size(); ++second)
      EXPECT_EQ(forwarded(Lines("> "), {text.substr(0, first), text.substr(first, second - first),
                                        text.substr(second)}),
                "> one\n> \n> two\n> three\n");
}

TEST(Lines, wait_for_their_end) {
  Lines lines("> ");
  std::string out;
  lines.add("half", out);
  EXPECT_EQ(out, "");
  lines.add(" and half\nnext", out);
  EXPECT_EQ(out, "> half and half\n");
}

TEST(Lines, are_broken_where_they_grow_too_long) {
  EXPECT_EQ(forwarded(Lines(">", 4), {"abcdefghij\n"}), ">abcd\n>efgh\n>ij\n");
  EXPECT_EQ(forwarded(Lines(">", 4), {"abc\nab", "cde"}), ">abc\n>abcd\n>e\n");
}

TEST(Lines, print_nothing_of_nothing) { EXPECT_EQ(forwarded(Lines(">"), {""}), ""); }

}  // namespace
}  // namespace meshpost::launch
