#include "meshpost/trace/wait_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

namespace meshpost {
namespace {

RankView waiting(u32 rank, std::vector<u32> could_wake, bool sent_before = false) {
  RankView view;
  view.rank = rank;
  view.state = RankState::waiting;
  view.note = {Operation::wait, 5, 7, 1, Note::no_rank};
  view.could_wake = std::move(could_wake);
  view.sent_before = sent_before;
  return view;
}
RankView in_state(u32 rank, RankState state) {
  RankView view;
  view.rank = rank;
  view.state = state;
  return view;
}
RankView at_barrier(u32 rank, std::vector<u32> missing) {
  auto view = waiting(rank, std::move(missing));
  view.note = {Operation::barrier, 0, 0, 3, Note::no_rank};
  return view;
}

std::string window(u32 number) { return "window " + std::to_string(number); }
std::string communicator(u32 number) {
  return number == 0 ? "the world" : "communicator " + std::to_string(number);
}
std::string place(u32 rank) { return rank < 100 ? "in process 1" : "in process 2, which is gone"; }
std::string report(std::vector<RankView> const& ranks, std::size_t most = 16) {
  return wait_report(ranks, {window, communicator, place}, most);
}
using Ranks = std::vector<u32>;

TEST(Cycle, of_two_is_found) {
  EXPECT_EQ(find_cycle({waiting(0, {1}), waiting(1, {0})}), (Ranks{0, 1}));
}

TEST(Cycle, of_three_is_found_in_its_order) {
  EXPECT_EQ(find_cycle({waiting(0, {2}), waiting(1, {0}), waiting(2, {1})}), (Ranks{0, 2, 1}));
}

TEST(Cycle, of_one_that_waits_for_itself_is_itself_alone) {
  EXPECT_EQ(find_cycle({waiting(4, {4})}), (Ranks{4}));
  EXPECT_EQ(find_cycle({waiting(0, {4}), waiting(4, {4})}), (Ranks{4})) << "not the way to it";
}

TEST(Cycle, is_found_behind_a_way_that_leads_to_it) {
  EXPECT_EQ(find_cycle({waiting(0, {1}), waiting(1, {2}), waiting(2, {3}), waiting(3, {2})}),
            (Ranks{2, 3}));
}

TEST(Cycle, is_found_where_the_first_of_several_leads_nowhere) {
  EXPECT_EQ(find_cycle({at_barrier(0, {1, 2}), waiting(1, {9}), waiting(2, {0}),
                        in_state(9, RankState::ended)}),
            (Ranks{0, 2}));
}

TEST(Cycle, is_not_there_where_a_chain_ends_at_a_rank_that_ended) {
  EXPECT_TRUE(
      find_cycle({waiting(0, {1}), waiting(1, {2}), in_state(2, RankState::ended)}).empty());
  EXPECT_TRUE(find_cycle({waiting(0, {1}), in_state(1, RankState::running)}).empty());
  EXPECT_TRUE(find_cycle({}).empty());
  EXPECT_TRUE(find_cycle({waiting(3, {})}).empty());
}

TEST(Cycle, is_not_guessed_where_a_rank_that_could_wake_is_not_known) {
  EXPECT_TRUE(find_cycle({waiting(0, {}), in_state(1, RankState::ended), waiting(2, {})}).empty());
  EXPECT_TRUE(find_cycle({waiting(0, {}), in_state(1, RankState::absent), waiting(2, {})}).empty());
  EXPECT_TRUE(find_cycle({waiting(0, {}), waiting(2, {0})}).empty());
  EXPECT_EQ(find_cycle({waiting(0, {2}), in_state(1, RankState::absent), waiting(2, {0})}),
            (Ranks{0, 2}))
      << "known all the same";
}

TEST(Cycle, among_thousands_is_found_at_once) {
  std::vector<RankView> ranks;
  Ranks all;
  for (u32 r = 0; r < 3000; ++r) all.push_back(r);
  for (u32 r = 0; r < 3000; ++r)
    ranks.push_back(at_barrier(r, r < 2999 ? Ranks{5000, r + 1} : Ranks{5000}));
  EXPECT_TRUE(find_cycle(ranks).empty());
  ranks.back().could_wake = {1000};
  EXPECT_EQ(find_cycle(ranks).size(), 2000u);
}

TEST(WaitReport, names_tag_window_count_and_who_sent_before) {
  EXPECT_EQ(report({waiting(3, {2}, true), in_state(2, RankState::ended)}),
            "rank 3 waits for tag 7 of window 5, 0 of 1 arrived; rank 2, which sent it before, has "
            "ended");
  EXPECT_EQ(report({waiting(3, {2}), in_state(2, RankState::failed)}),
            "rank 3 waits for tag 7 of window 5, 0 of 1 arrived; rank 2, which is expected to send "
            "it, has failed");
  EXPECT_EQ(report({waiting(3, {})}),
            "rank 3 waits for tag 7 of window 5, 0 of 1 arrived; nobody has sent it yet");
  EXPECT_NE(report({waiting(3, {9})}).find("rank 9, which is expected to send it, is unknown"),
            std::string::npos);
}

TEST(WaitReport, says_where_a_rank_is_whose_state_is_not_known) {
  EXPECT_EQ(report({waiting(3, {9}), in_state(9, RankState::absent)}),
            "rank 3 waits for tag 7 of window 5, 0 of 1 arrived; rank 9, which is expected to send "
            "it, is in process 1");
  EXPECT_EQ(report({waiting(3, {100}, true), in_state(100, RankState::absent)}),
            "rank 3 waits for tag 7 of window 5, 0 of 1 arrived; rank 100, which sent it before, "
            "is in process 2, which is gone");
  EXPECT_EQ(report({in_state(9, RankState::absent)}), "");
}

TEST(WaitReport, says_of_ranks_that_are_not_known_not_that_a_barrier_misses_them) {
  auto const absent = [](u32 rank) { return in_state(rank, RankState::absent); };
  EXPECT_EQ(report({at_barrier(0, {1, 9, 100, 101}), in_state(1, RankState::ended), absent(9),
                    absent(100), absent(101)}),
            "rank 0 waits in barrier of the world; not there yet: rank 1, which has ended; rank 9 "
            "is in process 1; ranks 100, 101 are in process 2, which is gone");
  std::vector<RankView> ranks{at_barrier(0, {})};
  for (u32 r = 100; r < 112; ++r) {
    ranks.front().could_wake.push_back(r);
    ranks.push_back(absent(r));
  }
  EXPECT_EQ(report(ranks),
            "rank 0 waits in barrier of the world; ranks 100, 101, 102, 103, 104, 105, 106, 107 "
            "and 4 more are in process 2, which is gone");
}

TEST(WaitReport, says_who_waits_for_the_network) {
  for (auto const& [operation, name] :
       {std::pair(Operation::put, "put"), std::pair(Operation::flush, "flush"),
        std::pair(Operation::get, "get")}) {
    auto view = waiting(3, {});
    view.note = {operation, 0, 0, 0, Note::no_rank};
    EXPECT_EQ(report({view}), "rank 3 waits for the network in " + std::string(name));
  }
}

TEST(WaitReport, counts_what_has_arrived) {
  auto view = waiting(0, {});
  view.note.count = 5;
  view.observed = 2;
  EXPECT_NE(report({view}).find("2 of 5 arrived"), std::string::npos);
  view.observed = 5;
  EXPECT_NE(report({view}).find("which came after the run was ended"), std::string::npos);
}

TEST(WaitReport, names_who_is_missing_at_a_barrier) {
  EXPECT_EQ(report({at_barrier(0, {1}), in_state(1, RankState::ended)}),
            "rank 0 waits in barrier of the world; not there yet: rank 1, which has ended");
  Ranks missing;
  for (u32 r = 1; r <= 12; ++r) missing.push_back(r);
  EXPECT_EQ(report({at_barrier(0, {1, 2})}),
            "rank 0 waits in barrier of the world; not there yet: ranks 1, 2, which have not come");
  EXPECT_NE(report({at_barrier(0, missing)}).find("ranks 1, 2, 3, 4, 5, 6, 7, 8 and 4 more"),
            std::string::npos);
}

TEST(WaitReport, shows_a_polled_word_in_its_type) {
  auto view = waiting(1, {});
  view.note = {Operation::wait_until, 0, 0, 0, Note::no_rank};
  view.condition = {nullptr, bits_of(2.5), WordType::f64_, Compare::greater_equal};
  view.observed = bits_of(-1.25);
  EXPECT_EQ(report({view}), "rank 1 waits until its word is >= 2.5, it is -1.25");
  view.condition = {nullptr, bits_of(i32{-3}), WordType::i32_, Compare::equal};
  view.observed = bits_of(i32{-4});
  EXPECT_EQ(report({view}), "rank 1 waits until its word is == -3, it is -4");
}

TEST(WaitReport, ends_with_the_cycle) {
  auto const text = report({waiting(0, {1}), waiting(1, {0})});
  EXPECT_TRUE(text.ends_with("\n  cycle: rank 0 -> rank 1 -> rank 0")) << text;
}

TEST(WaitReport, lists_some_of_many_and_counts_the_rest) {
  std::vector<RankView> ranks;
  for (u32 r = 0; r < 100; ++r) ranks.push_back(waiting(r, {(r + 1) % 100}));
  ranks.push_back(in_state(100, RankState::running));
  ranks.push_back(in_state(101, RankState::running));
  auto const text = report(ranks, 4);
  EXPECT_NE(text.find("rank 3 waits"), std::string::npos);
  EXPECT_EQ(text.find("rank 4 waits"), std::string::npos);
  EXPECT_NE(text.find("and 96 more ranks wait"), std::string::npos) << text;
  EXPECT_NE(text.find("2 ranks are not in a wait"), std::string::npos) << text;
  EXPECT_NE(text.find("cycle: rank 0 -> rank 1 -> rank 2 -> rank 3 -> ... -> rank 0"),
            std::string::npos)
      << text;
  EXPECT_EQ(report({in_state(0, RankState::running)}), "1 rank is not in a wait");
  EXPECT_EQ(report({}), "");
}

TEST(WaitReport, tells_who_tests_in_vain) {
  auto view = waiting(6, {});
  view.state = RankState::asking;
  view.note.operation = Operation::test;
  EXPECT_EQ(
      report({view}),
      "rank 6 tests tag 7 of window 5 again and again, 0 of 1 arrived; nobody has sent it yet");
}

}  // namespace
}  // namespace meshpost
