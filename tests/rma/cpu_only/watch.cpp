// The host's eye on running ranks, with ranks that move at chosen moments: between its look at all
// of them and its look at their answers.
#include "rma/watch.hpp"

#include <gtest/gtest.h>

namespace meshpost::detail {
namespace {

using namespace std::chrono_literals;

// Two ranks that wait for a word. The host asks deadlocked() after each look at the ranks, before
// it asks them or reads what they answered.
class TwoRanks : public Gang {
 public:
  using Moves = std::function<void(TwoRanks&, u32 look)>;
  explicit TwoRanks(Moves moves) : moves_(std::move(moves)) {
    for (auto& report : reports) {
      report.state = static_cast<u32>(RankState::waiting);
      report.sequence = 1;
      report.condition = {&word, 1, WordType::u32_, Compare::equal};
    }
  }
  void end(u32 rank) { reports[rank].state = static_cast<u32>(RankState::ended); }
  void answer(u32 rank) { reports[rank].epoch = control.epoch; }

  void doze(std::chrono::microseconds) override {}
  bool finished() override {
    for (auto const& report : reports)
      if (report.state != static_cast<u32>(RankState::ended)) return control.poison != 0;
    return true;
  }
  bool deadlocked() override {
    moves_(*this, looks_++);
    return false;
  }
  Reason watched() {
    RunningGang const crew{this, {{nullptr, 2, 0, nullptr, reports, &control}}};
    std::vector<LogReader> logs;
    return Watch({crew}, logs, 5s, nullptr, nullptr).until_end().reason;
  }

 private:
  Moves moves_;
  u32 looks_ = 0;
  u32 word = 0;
  RankReport reports[2] = {};
  Control control = {};
};

// -- ranks with a thread that waits, and another that goes on

class DivergedRanks : public Gang {
 public:
  explicit DivergedRanks(std::vector<u32> running, bool answers = false)
      : running_(std::move(running)), answers_(answers) {
    for (auto& report : reports_) report.state = static_cast<u32>(RankState::waiting);
  }
  void doze(std::chrono::microseconds) override {}
  bool finished() override { return false; }
  bool answers() const override { return answers_; }
  std::vector<u32> running_ranks() const override { return running_; }

  void watch() {
    RunningGang const crew{this, {{nullptr, 2, 10, nullptr, reports_, &control_}}};
    std::vector<LogReader> logs;
    Watch({crew}, logs, 10ms, nullptr, nullptr, nullptr, 10ms).until_end();
  }

 private:
  std::vector<u32> running_;
  bool answers_;
  RankReport reports_[2] = {};
  Control control_ = {};
};

// -- two GPUs, one of which has begun the next run already

class QueuedBehind : public Gang {
 public:
  /// `this_run`: what the rank of the first says belongs to the run that is watched.
  explicit QueuedBehind(bool this_run) {
    reports_[0].state = static_cast<u32>(RankState::failed);
    reports_[1].state = static_cast<u32>(RankState::running);
    ended_[0] = this_run ? 6 : 7;
  }
  void doze(std::chrono::microseconds) override {
    if (++looks_ == 3) ended_[0] = ended_[1] = 7;
  }
  bool finished() override { return (ended_[0] == 7 && ended_[1] == 7) || control_.poison != 0; }

  Reason watched() {
    RunningGang const both{
        this,
        {{nullptr, 1, 0, nullptr, reports_, &control_, nullptr, &ended_[0], 7},
         {nullptr, 1, 1, nullptr, reports_ + 1, &control_, nullptr, &ended_[1], 7}}};
    std::vector<LogReader> logs;
    return Watch({both}, logs, 5s, nullptr, nullptr).until_end().reason;
  }

 private:
  u32 looks_ = 0;
  u32 ended_[2] = {6, 6};
  RankReport reports_[2] = {};
  Control control_ = {};
};

TEST(Watch, does_not_take_a_failure_of_the_next_run_for_this_ones) {
  EXPECT_EQ(QueuedBehind(false).watched(), Reason::finished);
  EXPECT_EQ(QueuedBehind(true).watched(), Reason::failed);
}

TEST(WatchDeath, names_the_ranks_that_go_on_when_their_first_threads_wait) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(DivergedRanks({11}).watch(), testing::ExitedWithCode(EXIT_FAILURE),
              "0.01 s later. .* no meshpost operation: 11\\. .*endless loop");
  EXPECT_EXIT(DivergedRanks({}, true).watch(), testing::ExitedWithCode(EXIT_FAILURE),
              "no meshpost operation: 10, 11\\.")
      << "where nothing more is known";
}

TEST(Watch, takes_ranks_that_answer_that_they_wait_in_vain_for_deadlocked) {
  TwoRanks ranks([](TwoRanks& all, u32 look) {
    if (look == 1) all.answer(0), all.answer(1);
  });
  EXPECT_EQ(ranks.watched(), Reason::deadlock);
}

TEST(Watch, takes_one_that_waits_for_one_that_had_ended_before_it_was_asked_for_deadlocked) {
  TwoRanks ranks([](TwoRanks& all, u32 look) {
    if (look == 0) all.end(1);
    if (look == 1) all.answer(0);
  });
  EXPECT_EQ(ranks.watched(), Reason::deadlock);
}

TEST(Watch, does_not_take_ranks_for_deadlocked_that_end_before_they_answer) {
  TwoRanks ranks([](TwoRanks& all, u32 look) {
    if (look == 1) all.end(0), all.end(1);
  });
  EXPECT_EQ(ranks.watched(), Reason::finished);
}

TEST(Watch, does_not_take_a_rank_for_deadlocked_that_another_may_have_woken_behind_its_answer) {
  TwoRanks ranks([](TwoRanks& all, u32 look) {
    if (look == 1) all.answer(0), all.end(1);  // rank 1 notified rank 0, which has not seen it yet
    if (look == 2) all.end(0);
  });
  EXPECT_EQ(ranks.watched(), Reason::finished);
}

}  // namespace
}  // namespace meshpost::detail
