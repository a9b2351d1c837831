#include "meshpost/pipeline/schedule.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/errors.hpp"

namespace meshpost::test {
namespace {

std::string way_of(ScheduleShape const& shape) {
  std::string text;
  for (auto const& leg : make_schedule(shape).legs) text += to_string(leg) + " ";
  return text;
}

// Every shape of up to 4 levels, 5 chunks and a depth of 3, with every set of levels that compute.
std::vector<ScheduleShape> all_shapes_of_schedules() {
  std::vector<ScheduleShape> shapes;
  for (u32 levels = 1; levels <= 4; ++levels)
    for (u64 chunks = 0; chunks <= 5; ++chunks)
      for (u32 depth = 1; depth <= 3; ++depth)
        for (u32 set = 0; set < 1u << levels; ++set)
          for (u32 flags = 0; flags < 4; ++flags) {
            ScheduleShape shape{levels, chunks, depth, {}, (flags & 1) != 0, (flags & 2) != 0};
            for (u32 level = 0; level < levels; ++level)
              if ((set >> level & 1) != 0) shape.compute.push_back(level);
            if (levels > 1 || set != 0) shapes.push_back(shape);
          }
  return shapes;
}

std::string describe(ScheduleShape const& shape) {
  return way_of(shape) + "chunks " + std::to_string(shape.chunks) + " depth " +
         std::to_string(shape.depth);
}

// A machine on which a schedule runs. Slots hold the number of a chunk and the legs that it has
// done. A step begins, reads and writes during all its time, and ends. Wrong overlaps are recorded.
class SimulatedRun {
 public:
  explicit SimulatedRun(Schedule const& schedule)
      : schedule_(schedule), ended_(schedule.size()), slots_(schedule.buffers.size()) {
    for (u32 b = 0; b < slots_.size(); ++b)
      slots_[b].resize(schedule.buffers[b].users ? schedule.shape.chunks : schedule.shape.depth);
    for (u64 c = 0; c < schedule.shape.chunks; ++c) slots_[0][c].value = c * 100;
  }
  bool can_begin(u64 number) const {
    auto const after = schedule_.step(number).after;
    return std::all_of(after.begin(), after.end(), [&](u64 one) { return ended_[one]; });
  }
  void begin(u64 number) {
    auto const step = schedule_.step(number);
    if (step.stage == Stage::sync) return;
    auto& source = at(step.leg, step.chunk);
    auto& target = at(step.leg + 1, step.chunk);
    EXPECT_EQ(source.value, step.chunk * 100 + step.leg) << "the wrong data are read";
    EXPECT_FALSE(source.written) << "read while it is written";
    EXPECT_EQ(target.readers, 0) << "written while it is read";
    EXPECT_FALSE(target.written) << "written twice at once";
    EXPECT_TRUE(target.consumed) << "overwritten before it was read";
    ++source.readers;
    target.written = true;
    target.value = poison;
  }
  void end(u64 number) {
    EXPECT_FALSE(ended_[number]) << "a step twice";
    ended_[number] = true;
    auto const step = schedule_.step(number);
    if (step.stage == Stage::sync) return;
    auto& source = at(step.leg, step.chunk);
    auto& target = at(step.leg + 1, step.chunk);
    EXPECT_EQ(source.value, step.chunk * 100 + step.leg) << "overwritten while it was read";
    --source.readers;
    source.consumed = true;
    target = {step.chunk * 100 + step.leg + 1, 0, false, false};
  }
  void check_results() const {
    EXPECT_TRUE(std::all_of(ended_.begin(), ended_.end(), [](bool one) { return one; }));
    for (u64 c = 0; c < schedule_.shape.chunks; ++c)
      EXPECT_EQ(slots_.back()[c].value, c * 100 + schedule_.legs.size());
  }

 private:
  static constexpr u64 poison = ~u64{0};
  struct Slot {
    u64 value = poison;
    int readers = 0;
    bool written = false, consumed = true;
  };
  Slot& at(u32 buffer, u64 chunk) {
    return slots_[buffer][schedule_.buffers[buffer].users ? chunk : schedule_.slot(chunk)];
  }
  Schedule const& schedule_;
  std::vector<bool> ended_;
  std::vector<std::vector<Slot>> slots_;
};

TEST(Schedule, follows_coaccels_rules) {
  EXPECT_EQ(way_of({3, 1, 1, {2}}), "LOAD^1 LOAD^2 COMP^2 SAVE^1 SAVE^0 ");
  auto const schedule = make_schedule({3, 1, 1, {2}});
  std::string stages;
  for (u64 i = 0; i < schedule.size(); ++i)
    stages += std::string(to_string(schedule.step(i).stage)) + " ";
  EXPECT_EQ(stages, "LOAD SYNC LOAD SYNC COMP SYNC SAVE SYNC SAVE SYNC ");
}

TEST(Schedule, in_reverse_starts_at_the_last_level_with_load_and_save_swapped) {
  EXPECT_EQ(way_of({3, 1, 1, {0}, true}), "SAVE^1 SAVE^0 COMP^0 LOAD^1 LOAD^2 ");
}

TEST(Schedule, computes_on_the_way_and_stays_at_the_far_end_if_asked) {
  EXPECT_EQ(way_of({3, 1, 1, {1}, false, false}), "LOAD^1 COMP^1 LOAD^2 ");
  EXPECT_EQ(way_of({3, 1, 1, {}}), "LOAD^1 LOAD^2 SAVE^1 SAVE^0 ");
  EXPECT_EQ(way_of({1, 1, 1, {0}}), "COMP^0 ");
}

TEST(Schedule, has_an_in_and_an_out_buffer_at_each_level_but_home) {
  auto const schedule = make_schedule({3, 1, 1, {2}});
  std::vector<ChunkBuffer> const expected = {{0, true},  {1, false}, {2, false},
                                             {2, false}, {1, false}, {0, true}};
  EXPECT_EQ(schedule.buffers, expected);
}

TEST(Schedule, numbers_steps_so_that_each_comes_after_those_it_waits_for) {
  for (auto const& shape : all_shapes_of_schedules()) {
    auto const schedule = make_schedule(shape);
    for (u64 i = 0; i < schedule.size(); ++i)
      for (u64 const before : schedule.step(i).after) ASSERT_LT(before, i) << describe(shape);
  }
}

TEST(Schedule, is_right_in_every_order_for_small_shapes) {
  // Depth-first through every reachable order of begins and ends of up to 2 chunks and 2 levels.
  struct Search {
    Schedule const& schedule;
    u64 orders = 0;
    void go(std::vector<u64>& events) {
      SimulatedRun run(schedule);
      std::vector<u32> state(schedule.size(), 0);
      for (u64 const event : events) (state[event]++ == 0) ? run.begin(event) : run.end(event);
      bool open = false;
      for (u64 i = 0; i < schedule.size(); ++i) {
        if (state[i] == 2 || (state[i] == 0 && !run.can_begin(i))) continue;
        open = true;
        events.push_back(i);
        go(events);
        events.pop_back();
      }
      if (open) return;
      ++orders;
      run.check_results();
    }
  };
  for (auto const& shape :
       {ScheduleShape{2, 2, 1, {}}, ScheduleShape{2, 2, 2, {}},
        ScheduleShape{2, 2, 1, {1}, false, false}, ScheduleShape{2, 2, 1, {1}},
        ScheduleShape{1, 2, 1, {0}}, ScheduleShape{2, 2, 1, {0}, true, false}}) {
    auto const schedule = make_schedule(shape);
    Search search{schedule};
    std::vector<u64> events;
    search.go(events);
    bool const serial = schedule.legs.size() == 2 && shape.depth == 1;  // neighbours take turns
    EXPECT_EQ(search.orders > 1, !serial) << describe(shape);
  }
}

TEST(Schedule, is_right_in_random_orders_for_all_shapes) {
  auto const seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937_64 random(seed);
  for (auto const& shape : all_shapes_of_schedules()) {
    SCOPED_TRACE(describe(shape) + " seed " + std::to_string(seed));
    auto const schedule = make_schedule(shape);
    for (int repeat = 0; repeat < 3; ++repeat) {
      SimulatedRun run(schedule);
      std::vector<u64> waiting(schedule.size()), running;
      std::iota(waiting.begin(), waiting.end(), 0);
      while (!waiting.empty() || !running.empty()) {
        std::vector<u64> ready;
        for (u64 const one : waiting)
          if (run.can_begin(one)) ready.push_back(one);
        ASSERT_FALSE(ready.empty() && running.empty()) << "nothing can go on";
        u64 const pick = random() % (ready.size() + running.size());
        if (pick < ready.size()) {
          run.begin(ready[pick]);
          running.push_back(ready[pick]);
          std::erase(waiting, ready[pick]);
        } else {
          u64 const ended = running[pick - ready.size()];
          run.end(ended);
          std::erase(running, ended);
        }
      }
      run.check_results();
      if (HasFailure()) return;
    }
  }
}

TEST(Schedule, would_be_found_wrong_without_waiting_for_free_buffers) {
  auto const schedule = make_schedule({2, 2, 1, {}});
  SimulatedRun run(schedule);
  auto const load = [&](u64 chunk) { return schedule.number(chunk, 0, false); };
  run.begin(load(0));
  run.end(load(0));
  EXPECT_FALSE(run.can_begin(load(1)));
  EXPECT_NONFATAL_FAILURE(run.begin(load(1)), "overwritten before it was read");
}

std::vector<LegTime> own_engines(std::vector<double> const& seconds) {
  std::vector<LegTime> legs;
  for (u32 i = 0; i < seconds.size(); ++i) legs.push_back({seconds[i], i});
  return legs;
}

TEST(Predict, total_tends_to_the_slowest_leg_not_to_the_sum) {
  std::vector<double> const times = {2, 3, 5, 1, 4};
  for (u32 depth = 2; depth <= 4; ++depth)
    for (u64 chunks : {1, 2, 10, 1000}) {
      auto const total =
          predict(make_schedule({3, chunks, depth, {2}}), own_engines(times)).seconds;
      EXPECT_DOUBLE_EQ(total, 15.0 + 5.0 * static_cast<double>(chunks - 1));
    }
}

TEST(Predict, with_one_slot_the_slowest_two_neighbours_take_turns) {
  std::vector<double> const times = {2, 3, 5, 1, 4};
  auto const total = predict(make_schedule({3, 1001, 1, {2}}), own_engines(times)).seconds;
  EXPECT_NEAR(total, 8.0 * 1000, 20);
}

TEST(Predict, legs_of_one_engine_take_turns) {
  auto const schedule = make_schedule({2, 1000, 2, {1}});
  EXPECT_NEAR(predict(schedule, std::vector<LegTime>{{2, 0}, {1, 1}, {3, 0}}).seconds, 5000, 10);
  EXPECT_DOUBLE_EQ(predict(schedule, std::vector<LegTime>{{2, 0}, {1, 0}, {3, 0}}).seconds, 6000);
}

TEST(Predict, keeps_every_dependency_and_never_uses_an_engine_twice_at_once) {
  auto const seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (auto const& shape : all_shapes_of_schedules()) {
    SCOPED_TRACE(describe(shape) + " seed " + std::to_string(seed));
    auto const schedule = make_schedule(shape);
    std::vector<LegTime> legs(schedule.legs.size());
    for (auto& leg : legs)
      leg = {static_cast<double>(random() % 5), static_cast<u32>(random() % 3)};
    auto const prediction = predict(schedule, legs);
    std::vector<std::vector<StepTime>> busy(3);
    for (u64 i = 0; i < schedule.size(); ++i) {
      auto const step = schedule.step(i);
      for (u64 const before : step.after)
        ASSERT_GE(prediction.steps[i].begin, prediction.steps[before].end);
      if (step.stage == Stage::sync) continue;
      auto const [begin, end] = prediction.steps[i];
      ASSERT_DOUBLE_EQ(end - begin, legs[step.leg].seconds);
      if (end > begin) busy[legs[step.leg].engine].push_back({begin, end});
    }
    for (auto& engine : busy) {
      std::sort(engine.begin(), engine.end(),
                [](auto const& a, auto const& b) { return a.begin < b.begin; });
      for (u64 i = 1; i < engine.size(); ++i) ASSERT_GE(engine[i].begin, engine[i - 1].end);
    }
  }
}

TEST(Schedule, refuses_what_makes_none) {
  auto const refuses = [](ScheduleShape const& shape, std::string_view piece) {
    return says(error_of([&] { make_schedule(shape); }), Kind::bad_argument, {piece});
  };
  EXPECT_TRUE(refuses({0, 1, 1, {}}, "no levels"));
  EXPECT_TRUE(refuses({2, 1, 0, {}}, "0 chunks"));
  EXPECT_TRUE(refuses({2, 1, 1, {2}}, "level 2 computes, but there are 2"));
  EXPECT_TRUE(refuses({2, 1, 1, {1, 1}}, "twice"));
  EXPECT_TRUE(refuses({1, 1, 1, {}}, "one level"));
  auto const schedule = make_schedule({2, 1, 1, {}});
  EXPECT_TRUE(says(error_of([&] { schedule.step(4); }), Kind::bad_argument, {"step 4 of 4"}));
  EXPECT_TRUE(says(error_of([&] { predict(schedule, std::vector<LegTime>(1)); }),
                   Kind::bad_argument, {"1 times for 2 legs"}));
  EXPECT_TRUE(says(error_of([&] { predict(schedule, std::vector<LegTime>{{-1, 0}, {1, 0}}); }),
                   Kind::bad_argument, {"-1 s"}));
}

TEST(Predict, refuses_an_engine_that_does_not_exist) {
  auto const schedule = make_schedule({2, 3, 2, {}});
  for (u32 const engine : {12288u, u32{1} << 30, ~u32{0}})
    EXPECT_TRUE(
        says(error_of([&] { predict(schedule, std::vector<LegTime>{{1, 0}, {1, engine}}); }),
             Kind::bad_argument, {"engine " + std::to_string(engine), "below 12288"}));
  EXPECT_DOUBLE_EQ(predict(schedule, std::vector<LegTime>{{1, 1}, {1, 1}}).seconds, 6);
}

TEST(Schedule, of_more_steps_than_numbers_or_memory_is_refused) {
  u64 const most = ~u64{0};
  EXPECT_TRUE(says(error_of([&] { make_schedule({2, most / 2, 2, {}}); }), Kind::bad_argument,
                   {"2^64", "larger chunks"}));
  auto schedule = make_schedule({2, most / 4, 2, {}});
  EXPECT_EQ(schedule.size(), most / 4 * 4);
  EXPECT_TRUE(says(error_of([&] { predict(schedule, std::vector<LegTime>(2)); }),
                   Kind::out_of_memory, {"times of steps"}));
  schedule.shape.chunks = most / 4 + 1;  // wraps to 0
  for (auto const& error : {error_of([&] { schedule.size(); }), error_of([&] { schedule.step(0); }),
                            error_of([&] { predict(schedule, std::vector<LegTime>(2)); })})
    EXPECT_TRUE(says(error, Kind::bad_argument, {"2^64"}));
}

TEST(Schedule, that_is_too_deep_is_refused) {
  EXPECT_TRUE(says(error_of([] { make_schedule({~u32{0}, 1, 2, {}}); }), Kind::bad_argument,
                   {"4294967295 levels", "4096"}));
  EXPECT_TRUE(says(error_of([] { make_schedule({2, 1, ~u32{0}, {}}); }), Kind::bad_argument,
                   {"room for 4294967295 chunks", "65536"}));
  EXPECT_EQ(make_schedule({4096, 1, 65536, {}}).legs.size(), 2 * 4095u);
}

}  // namespace
}  // namespace meshpost::test
