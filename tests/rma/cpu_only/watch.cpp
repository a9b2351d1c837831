// The host's supervision of running ranks. Ranks move at chosen moments: after the host has read
// all of them and before it reads their answers.
#include "rma/runs/supervising/watch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace meshpost::detail {
namespace {

using namespace std::chrono_literals;

// Two ranks that wait for a word. The host calls deadlocked() each time after it has read the
// ranks, before it asks them or reads their answers.
class TwoRanks : public CooperativeLaunch {
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
    LaunchGrid const grid{nullptr, 2, 0, nullptr, reports, &control};
    RunningGrids const running{this, {&grid, 1}};
    std::vector<LogReader> logs;
    return Watch({running}, logs, 5s, nullptr, nullptr).until_end().reason;
  }

 private:
  Moves moves_;
  u32 looks_ = 0;
  u32 word = 0;
  RankReport reports[2] = {};
  Control control = {};
};

// -- ranks with one thread that waits and another that goes on

class DivergedRanks : public CooperativeLaunch {
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
    LaunchGrid const grid{nullptr, 2, 10, nullptr, reports_, &control_};
    RunningGrids const running{this, {&grid, 1}};
    std::vector<LogReader> logs;
    Watch({running}, logs, 10ms, nullptr, nullptr, nullptr, 10ms).until_end();
  }

 private:
  std::vector<u32> running_;
  bool answers_;
  RankReport reports_[2] = {};
  Control control_ = {};
};

// -- two GPUs, one of which has begun the next run already

class QueuedBehind : public CooperativeLaunch {
 public:
  /// `this_run`: the report of the first GPU's rank belongs to the watched run.
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
    LaunchGrid const grids[] = {
        {nullptr, 1, 0, nullptr, reports_, &control_, nullptr, &ended_[0], 7},
        {nullptr, 1, 1, nullptr, reports_ + 1, &control_, nullptr, &ended_[1], 7}};
    RunningGrids const both{this, grids};
    std::vector<LogReader> logs;
    return Watch({both}, logs, 5s, nullptr, nullptr).until_end().reason;
  }

 private:
  u32 looks_ = 0;
  u32 ended_[2] = {6, 6};
  RankReport reports_[2] = {};
  Control control_ = {};
};

// -- a graph of three runs on two GPUs of one rank each. Each case says what happens between two
//   polls of the host.
class PlayedGraph : public CooperativeLaunch {
 public:
  struct Device {
    RankReport report{};
    Control control{};
    u32 begun = 1, ended = 0;

    void says(RankState state) { report.state = static_cast<u32>(state); }
    void waits_in(u32 run) {
      begun = run, ended = run - 1;
      report.condition = {&nothing, 1};
      ++report.sequence;
      says(RankState::waiting);
    }
    void waits_at_the_end_of(u32 run) {
      begun = run, ended = run - 1;
      says(RankState::ended);
    }
    void waits_for_its_news_of(u32 run) {
      begun = ended = run;
      says(RankState::ended);
    }
  };

  explicit PlayedGraph(std::function<void(u32 look)> play) : play_(std::move(play)) {}

  // Ranks that wait answer at once.
  void doze(std::chrono::microseconds /*timeout*/) override {
    if (++look_ > 10) end();
    else play_(look_);
    for (auto& device : devices) {
      if (device.control.poison != 0) end();
      if (device.report.state != static_cast<u32>(RankState::waiting)) continue;
      device.report.observed = nothing;
      device.report.epoch = device.control.epoch;
    }
  }
  bool finished() override { return devices[0].ended == 3 && devices[1].ended == 3; }

  Reason reason() {
    LaunchGrid grids[2];
    for (u32 d = 0; d < 2; ++d) {
      LaunchGrid& grid = grids[d];
      grid.ranks = 1, grid.first_rank = d, grid.run = grid.runs = 3;
      auto& device = devices[d];
      grid.reports = &device.report, grid.control = &device.control;
      grid.begun = &device.begun, grid.ended = &device.ended;
    }
    std::vector<LogReader> logs;
    return Watch({{this, grids}}, logs, std::chrono::milliseconds(0), nullptr, nullptr)
        .until_end()
        .reason;
  }

  std::array<Device, 2> devices;

 private:
  void end() {
    for (auto& device : devices) device.begun = device.ended = 3, device.says(RankState::running);
  }
  static inline u32 nothing = 0;
  std::function<void(u32 look)> play_;
  u32 look_ = 0;
};

using Devices = std::array<PlayedGraph::Device, 2>;

Reason reason_of(std::function<void(Devices&, u32 look)> const& play) {
  Devices* devices = nullptr;
  PlayedGraph graph([&](u32 look) { play(*devices, look); });
  devices = &graph.devices;
  return graph.reason();
}

TEST(Watch, does_not_take_a_failure_of_the_next_run_for_this_ones) {
  EXPECT_EQ(QueuedBehind(false).watched(), Reason::finished);
  EXPECT_EQ(QueuedBehind(true).watched(), Reason::failed);
}

TEST(WatchDeath, names_the_ranks_that_go_on_when_their_first_threads_wait) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(DivergedRanks({11}).watch(), testing::ExitedWithCode(EXIT_FAILURE),
              "0.01 s later. Threads of rank 11 call no meshpost operation\\. .*endless loop");
  EXPECT_EXIT(DivergedRanks({}, true).watch(), testing::ExitedWithCode(EXIT_FAILURE),
              "Threads of rank 10, rank 11 call no meshpost operation\\.")
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

TEST(Watch, finds_a_deadlock_in_a_later_run_of_a_graph) {
  EXPECT_EQ(reason_of([](Devices& devices, u32 look) {
              if (look != 2) return;
              for (auto& device : devices) device.waits_in(2);
            }),
            Reason::deadlock);
  EXPECT_EQ(reason_of([](Devices& devices, u32 look) {
              if (look != 2) return;
              devices[0].waits_at_the_end_of(2);
              devices[1].waits_in(2);
            }),
            Reason::deadlock);
}

// Device 0 has news of run 1. Device 1 waits in run 2 for operations of device 0 there.
TEST(Watch, takes_no_rank_for_stuck_whose_news_the_host_has_not_taken_or_just_now) {
  EXPECT_EQ(reason_of([](Devices& devices, u32 look) {
              if (look != 2) return;
              devices[0].waits_for_its_news_of(1);
              devices[1].waits_in(2);
            }),
            Reason::finished);
}

// Device 0 has no time to see that run 1 has ended on both.
TEST(Watch, takes_no_rank_for_stuck_that_has_yet_to_begin_the_run) {
  auto const waits = [](bool begins) {
    return reason_of([&](Devices& devices, u32 look) {
      if (look != 2) return;
      devices[0].waits_at_the_end_of(2);
      devices[0].report.begins = begins ? 1 : 0;
      devices[1].waits_in(2);
    });
  };
  EXPECT_EQ(waits(true), Reason::finished);
  EXPECT_EQ(waits(false), Reason::deadlock);
}

TEST(Watch, takes_no_rank_for_stuck_that_has_ended_a_run_since_it_was_asked) {
  EXPECT_EQ(reason_of([](Devices& devices, u32 look) {
              if (look == 2) {
                devices[0].waits_at_the_end_of(2);
                devices[1].waits_in(2);
              }
              if (look == 3) devices[0].waits_for_its_news_of(2);
              if (look == 4) devices[1].waits_in(3);
            }),
            Reason::finished);
}

// -- ranks of a GPU have left, except for the first, which never sees that they have left

class StuckBehindTheEnd : public CooperativeLaunch {
 public:
  explicit StuckBehindTheEnd(bool all_ended) {
    for (auto& report : reports_) report.state = static_cast<u32>(RankState::running);
    reports_[0].state = static_cast<u32>(RankState::ended);
    reports_[0].all_ended = all_ended ? 1 : 0;
  }
  void doze(std::chrono::microseconds timeout) override {
    std::this_thread::sleep_for(timeout);
    ++looks_;
  }
  bool finished() override { return control_.poison != 0 || looks_ == 100; }
  Ending watch() {
    LaunchGrid const grid{nullptr, 3, 0, nullptr, reports_, &control_, nullptr, &ended_, 7};
    std::vector<LogReader> logs;
    return Watch({{this, {&grid, 1}}}, logs, 10ms, nullptr, nullptr).until_end();
  }

 private:
  u32 looks_ = 0, ended_ = 6;
  RankReport reports_[3] = {};
  Control control_ = {};
};

// -- two ranks that compute, and wait at look 3

class LookedAt : public CooperativeLaunch {
 public:
  LookedAt(bool answers, bool fails) : answers_(answers), fails_(fails) {
    for (auto& report : reports_) report.state = static_cast<u32>(RankState::running);
  }
  void doze(std::chrono::microseconds timeout) override {
    dozed.push_back(timeout);
    auto const state = dozed.size() == 3 ? RankState::waiting : RankState::running;
    for (auto& report : reports_) report.state = static_cast<u32>(state);
    if (fails_) reports_[1].state = static_cast<u32>(RankState::failed);
  }
  bool finished() override { return dozed.size() == 6; }
  bool answers() const override { return answers_; }

  std::vector<std::chrono::microseconds> watched() {
    LaunchGrid const grid{nullptr, 2, 0, nullptr, reports_, &control_};
    std::vector<LogReader> logs;
    Watch({{this, {&grid, 1}}}, logs, 5s, nullptr, nullptr).until_end();
    return dozed;
  }
  std::vector<std::chrono::microseconds> dozed;

 private:
  bool answers_, fails_;
  RankReport reports_[2] = {};
  Control control_ = {};
};

TEST(Watch, looks_rarely_at_ranks_that_compute_and_that_tell_it_of_their_end) {
  using All = std::vector<std::chrono::microseconds>;
  EXPECT_EQ(LookedAt(false, false).watched(), (All{1ms, 5ms, 5ms, 1ms, 5ms, 5ms}));
  EXPECT_EQ(LookedAt(true, false).watched(), All(6, 1ms)) << "ranks of GPUs";
  EXPECT_EQ(LookedAt(false, true).watched(), All(6, 1ms)) << "a rank has failed";
}

TEST(Watch, does_not_take_ranks_that_have_left_for_ranks_that_compute) {
  auto const ending = StuckBehindTheEnd(true).watch();
  EXPECT_EQ(ending.reason, Reason::deadline);
  EXPECT_EQ(ending.states, std::vector<RankState>(3, RankState::ended));
  EXPECT_EQ(StuckBehindTheEnd(false).watch().reason, Reason::finished) << "the others compute";
}

}  // namespace
}  // namespace meshpost::detail
