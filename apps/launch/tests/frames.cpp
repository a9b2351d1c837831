#include "frames.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshpost/base/error.hpp"
#include "orders.hpp"

namespace meshpost::launch {
namespace {

using testing::ElementsAre;

TEST(Frames, come_whole_out_of_any_pieces_behind_lines_of_text) {
  std::string stream = greeting() + "\n";
  pack_onto(stream, {Say::printed, 3, 1, std::string("a\0b\n", 4)});
  pack_onto(stream, {Say::ended, 2, -9, {}});
  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    Cutter cutter;
    std::vector<Frame> frames;
    bool greeted = false;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      cutter.add(stream.substr(at, piece));
      if (!greeted) greeted = cutter.line() == greeting();
      while (greeted) {
        if (auto frame = cutter.next()) frames.push_back(*frame);
        else break;
      }
    }
    ASSERT_EQ(frames.size(), 2u) << piece;
    EXPECT_EQ(frames[0].text, std::string("a\0b\n", 4));
    EXPECT_EQ(frames[0].process, 3u);
    EXPECT_EQ(frames[1].say, Say::ended);
    EXPECT_EQ(frames[1].number, -9);
  }
}

TEST(Frames, of_others_are_found_out) {
  Cutter cutter;
  cutter.add("Welcome to this host, which is like no other");
  EXPECT_THROW(cutter.next(), Error);
}

TEST(Lists, hold_any_texts) {
  for (std::vector<std::string> const& texts :
       {std::vector<std::string>{}, {""}, {"", "a", ""}, {"a b\n", "\xff"}})
    EXPECT_EQ(unpack_list(pack_list(texts)), texts);
}

TEST(Orders, come_out_as_they_went_in) {
  Orders const orders{{4, 0, "a:7", "secret", {"A=", "B=1=2"}}, "/there", {"program", "", "x"}};
  auto const same = unpack_orders(pack(orders));
  EXPECT_EQ(same.job.processes, 4u);
  EXPECT_EQ(same.job.rendezvous, "a:7");
  EXPECT_EQ(same.job.secret, "secret");
  EXPECT_EQ(same.job.variables, orders.job.variables);
  EXPECT_EQ(same.folder, orders.folder);
  EXPECT_EQ(same.command, orders.command);
  for (auto const* wrong : {"", "4", "999999999999"}) EXPECT_THROW(unpack_orders(wrong), Error);
  auto const half = pack(orders);
  EXPECT_THROW(unpack_orders(half.substr(0, half.find("B="))), Error);
}

}  // namespace
}  // namespace meshpost::launch
