#include "meshpost/pipeline/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "meshpost/base/error.hpp"
#include "pipeline/room.hpp"

namespace meshpost {
namespace {

constexpr std::string_view operation = "make a schedule";

// Far beyond any useful number. A pipeline has threads for each level, and keeps the ends of
// `depth` chunks.
constexpr u32 most_levels = 4096, most_deep = u32{1} << 16;
constexpr u32 most_engines = 3 * most_levels;  // one for each possible leg

void check(ScheduleShape const& shape) {
  if (shape.levels == 0)
    throw Error(Kind::bad_argument, std::string(operation), "there are no levels",
                "name the places that chunks go through");
  if (shape.depth == 0)
    throw Error(Kind::bad_argument, std::string(operation), "its buffers have room for 0 chunks",
                "use a depth of 1 or more; 2 lets neighbouring stages overlap");
  if (shape.levels > most_levels)
    throw Error(Kind::bad_argument, std::string(operation), fmt::format("{} levels", shape.levels),
                fmt::format("use {} or fewer", most_levels));
  if (shape.depth > most_deep)
    throw Error(
        Kind::bad_argument, std::string(operation),
        fmt::format("its buffers have room for {} chunks", shape.depth),
        fmt::format("use a depth of {} or less; 2 lets neighbouring stages overlap", most_deep));
  for (u32 const level : shape.compute) {
    if (level >= shape.levels)
      throw Error(Kind::bad_argument, std::string(operation),
                  fmt::format("level {} computes, but there are {} levels", level, shape.levels),
                  "levels count from 0");
    if (std::count(shape.compute.begin(), shape.compute.end(), level) != 1)
      throw Error(Kind::bad_argument, std::string(operation),
                  fmt::format("level {} computes twice", level), "let one computation do both");
  }
}

}  // namespace

std::string_view to_string(Stage stage) {
  static constexpr std::array<std::string_view, 4> names = {"LOAD", "SYNC", "COMP", "SAVE"};
  return names.at(static_cast<u32>(stage));
}

std::string to_string(Leg const& leg) {
  return fmt::format("{}^{}", to_string(leg.stage), leg.level);
}

Schedule make_schedule(ScheduleShape const& shape) {
  check(shape);
  u32 const last = shape.levels - 1;
  Schedule schedule{shape, {}, {}};
  // Distances from home, so that reverse differs only in names.
  auto const level_at = [&](u32 distance) { return shape.reverse ? last - distance : distance; };
  auto const add = [&](Stage stage, u32 level) {
    schedule.legs.push_back({stage, level});
    schedule.buffers.push_back({level, false});
  };
  schedule.buffers.push_back({level_at(0), true});
  for (u32 distance = 0; distance <= last; ++distance) {
    u32 const level = level_at(distance);
    if (distance > 0) add(shape.reverse ? Stage::save : Stage::load, level);
    if (std::count(shape.compute.begin(), shape.compute.end(), level) != 0) add(Stage::comp, level);
  }
  for (u32 distance = last; shape.back && distance > 0; --distance)
    add(shape.reverse ? Stage::load : Stage::save, level_at(distance - 1));
  if (schedule.legs.empty())
    throw Error(Kind::bad_argument, std::string(operation), "one level that doesn't compute",
                "add a level, or compute at this one");
  schedule.buffers.back().users = true;
  static_cast<void>(schedule.size());  // only to throw, if there are more steps than numbers
  return schedule;
}

u64 Schedule::size() const {
  u64 const each = legs.size() * 2;
  if (each != 0 && shape.chunks > ~u64{0} / each)
    throw Error(Kind::bad_argument, "count the steps of a schedule",
                fmt::format("{} chunks on {} legs have more than 2^64", shape.chunks, legs.size()),
                "use fewer, larger chunks");
  return shape.chunks * each;
}

Step Schedule::step(u64 wanted) const {
  if (wanted >= size())
    throw Error(Kind::bad_argument, "ask for a step of a schedule",
                fmt::format("step {} of {}", wanted, size()), "steps count from 0");
  bool const sync = wanted % 2 == 1;
  u32 const leg = static_cast<u32>(wanted / 2 % legs.size());
  u64 const chunk = wanted / 2 / legs.size();
  Step step{sync ? Stage::sync : legs[leg].stage, leg, chunk, {}};
  if (sync) {
    step.after.push_back(wanted - 1);
    return step;
  }
  if (leg > 0) step.after.push_back(number(chunk, leg - 1, true));
  if (leg + 1 < legs.size() && chunk >= shape.depth)
    step.after.push_back(number(chunk - shape.depth, leg + 1, true));
  if (chunk > 0) step.after.push_back(number(chunk - 1, leg, false));
  return step;
}

Prediction predict(Schedule const& schedule, std::span<LegTime const> legs) {
  if (legs.size() != schedule.legs.size())
    throw Error(Kind::bad_argument, "predict a pipeline",
                fmt::format("{} times for {} legs", legs.size(), schedule.legs.size()),
                "give one time a leg, in the schedule's order");
  u32 engines = 0;
  for (auto const& leg : legs) {
    if (!(leg.seconds >= 0) || std::isinf(leg.seconds))
      throw Error(Kind::bad_argument, "predict a pipeline",
                  fmt::format("a leg takes {} s", leg.seconds), "times are 0 or more");
    if (leg.engine >= most_engines)
      throw Error(Kind::bad_argument, "predict a pipeline",
                  fmt::format("a leg is on engine {}", leg.engine),
                  fmt::format("number engines from 0, below {}", most_engines));
    engines = std::max(engines, leg.engine + 1);
  }
  u64 const steps = schedule.size();
  Prediction prediction{
      0, pipelining::make_list<StepTime>(
             "predict a pipeline", steps, "times of steps",
             "predict fewer chunks: the time of each tends to that of the slowest leg")};
  std::vector<double> free(engines, 0.0);
  std::vector<u64> next(legs.size(), 0);  // chunk of each leg
  for (u64 placed = 0; placed < steps; placed += 2) {
    u32 best = 0;
    double soonest = std::numeric_limits<double>::infinity();
    for (u32 leg = 0; leg < legs.size(); ++leg) {
      u64 const chunk = next[leg];
      if (chunk == schedule.shape.chunks) continue;
      if (leg > 0 && next[leg - 1] <= chunk) continue;  // the leg before it is not placed yet
      if (leg + 1 < legs.size() && next[leg + 1] + schedule.shape.depth <= chunk) continue;
      double start = free[legs[leg].engine];
      for (u64 const before : schedule.step(schedule.number(chunk, leg, false)).after)
        start = std::max(start, prediction.steps[before].end);
      if (start <= soonest) best = leg, soonest = start;
    }
    u64 const step = schedule.number(next[best]++, best, false);
    double const end = soonest + legs[best].seconds;
    prediction.steps[step] = {soonest, end};
    prediction.steps[step + 1] = {end, end};
    free[legs[best].engine] = end;
    prediction.seconds = std::max(prediction.seconds, end);
  }
  return prediction;
}

}  // namespace meshpost
