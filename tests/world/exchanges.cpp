// Parts of exchanges may come in any order.
#include "world/exchanges.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace meshpost {
namespace {

using Parts = std::vector<std::string>;

// Three processes make two exchanges on one channel and one on another. Those on one channel keep
// their order. All else comes in every order.
TEST(Exchanges, give_parts_by_process_whatever_order_they_come_in) {
  std::vector<Exchanges::Key> const keys{{1, 1}, {1, 2}, {2, 1}};
  std::vector<u32> order(9);
  for (u32 i = 0; i < 9; ++i) order[i] = i;
  u32 orders = 0;
  do {
    auto const place = [&](u32 event) { return std::ranges::find(order, event) - order.begin(); };
    bool possible = true;
    for (u32 process = 0; process < 3; ++process) possible &= place(process) < place(3 + process);
    if (!possible) continue;
    ++orders;
    Exchanges exchanges(3);
    u32 count[3] = {};
    for (u32 const event : order) {
      u32 const process = event % 3, key = event / 3;
      auto const outcome = exchanges.bring(keys[key], process, "compare",
                                           std::to_string(key) + std::to_string(process));
      ASSERT_EQ(outcome.has_value(), ++count[key] == 3);
      if (!outcome) continue;
      auto const text = std::to_string(key);
      ASSERT_EQ(outcome->mismatch, "");
      ASSERT_EQ(outcome->parts, (Parts{text + "0", text + "1", text + "2"}));
    }
    ASSERT_TRUE(exchanges.overdue().empty());
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(orders, 362'880u / 8);
}

TEST(Exchanges, say_who_does_something_else) {
  std::vector<u32> order{0, 1, 2};
  do {
    Exchanges exchanges(3);
    std::optional<Exchanges::Outcome> outcome;
    for (u32 const process : order)
      outcome = exchanges.bring({1, 1}, process, process == 1 ? "split" : "make a window", "part");
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->mismatch, "process 1 does 'split' where process 0 does 'make a window'");
    EXPECT_TRUE(outcome->parts.empty());
  } while (std::ranges::next_permutation(order).found);
}

TEST(Exchanges, take_the_first_part_of_a_process_that_brings_two) {
  Exchanges exchanges(2);
  EXPECT_FALSE(exchanges.bring({1, 1}, 1, "compare", "first"));
  EXPECT_FALSE(exchanges.bring({1, 1}, 1, "compare", "second"));
  auto const outcome = exchanges.bring({1, 1}, 0, "compare", "mine");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->parts, (Parts{"mine", "first"}));
}

TEST(Exchanges, of_one_process_are_done_at_once) {
  Exchanges exchanges(1);
  EXPECT_EQ(exchanges.bring({1, 1}, 0, "compare", "mine")->parts, Parts{"mine"});
}

TEST(Exchanges, that_wait_too_long_are_told_once) {
  using namespace std::chrono_literals;
  Exchanges exchanges(3, Deadline(100ms));
  exchanges.bring({1, 1}, 1, "make a window", "");
  auto now = Deadline::Clock::now() + 1h;  // as if this process had been stopped for 1 h
  auto const overdue = [&] { return exchanges.overdue(now += 20ms); };
  for (int looks = 0; looks < 2; ++looks) EXPECT_TRUE(overdue().empty());
  auto waiting = overdue();
  for (; waiting.empty(); waiting = overdue()) continue;
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].operation, "make a window");
  EXPECT_EQ(waiting[0].missing, (std::vector<u32>{0, 2}));
  for (int looks = 0; looks < 20; ++looks) EXPECT_TRUE(overdue().empty());
  exchanges.bring({1, 2}, 0, "split", "");
  std::size_t told = 0;
  for (int looks = 0; looks < 20; ++looks) told += overdue().size();
  EXPECT_EQ(told, 1u);
}

TEST(Exchanges, whose_waiters_are_patient_are_not_told) {
  using namespace std::chrono_literals;
  Exchanges exchanges(2, Deadline(100ms));
  exchanges.bring({1, 1}, 1, "meet", "", Waiters::patient);
  auto now = Deadline::Clock::now();
  auto const overdue = [&] { return exchanges.overdue(now += 20ms); };
  for (int looks = 0; looks < 20; ++looks) EXPECT_TRUE(overdue().empty());
  exchanges.bring({2, 1}, 1, "split", "", Waiters::impatient);
  std::size_t told = 0;
  for (int looks = 0; looks < 20; ++looks) told += overdue().size();
  EXPECT_EQ(told, 1u);
  EXPECT_TRUE(exchanges.bring({1, 1}, 0, "meet", "", Waiters::patient));
}

}  // namespace
}  // namespace meshpost
