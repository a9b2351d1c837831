#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "meshpost/base/error.hpp"
#include "meshpost/pipeline/pipeline.hpp"

namespace meshpost {

std::string to_perfetto(Schedule const& schedule, PipelineResult const& result,
                        std::string const& name) {
  using nlohmann::json;
  auto const legs = schedule.legs.size();
  if (result.legs.size() != schedule.shape.chunks * legs)
    throw Error(
        Kind::bad_argument, "draw a pipeline",
        fmt::format("times of {} legs of {}", result.legs.size(), schedule.shape.chunks * legs),
        "run it with PipelineRun::timed");
  json events = json::array();
  auto const label = [&](char const* what, u64 thread, std::string text) {
    events.push_back({{"ph", "M"},
                      {"name", what},
                      {"pid", 0},
                      {"tid", thread},
                      {"args", {{"name", std::move(text)}}}});
  };
  label("process_name", 0, name);
  for (u64 leg = 0; leg < legs; ++leg) label("thread_name", leg, to_string(schedule.legs[leg]));
  for (u64 i = 0; i < result.legs.size(); ++i) {
    auto const stage = to_string(schedule.legs[i % legs].stage);
    auto const [begin, end] = result.legs[i];
    events.push_back({{"ph", "X"},
                      {"name", stage},
                      {"cat", "pipeline"},
                      {"pid", 0},
                      {"tid", i % legs},
                      {"ts", begin * 1e6},
                      {"dur", (end - begin) * 1e6},
                      {"args", {{"chunk", i / legs}}}});
  }
  return json{{"traceEvents", std::move(events)},
              {"displayTimeUnit", "ns"},
              {"otherData", {{"kernel", name}, {"seconds", result.seconds}}}}
      .dump();
}

}  // namespace meshpost
