#include <fmt/format.h>

#include "meshpost/base/error.hpp"
#include "meshpost/pipeline/pipeline.hpp"
#include "trace/event_text.hpp"

namespace meshpost {

std::string to_perfetto(Schedule const& schedule, PipelineResult const& result,
                        std::string const& name) {
  using trace::EventText;
  auto const legs = schedule.legs.size();
  if (result.legs.size() != schedule.shape.chunks * legs)
    throw Error(
        Kind::bad_argument, "draw a pipeline",
        fmt::format("times of {} legs of {}", result.legs.size(), schedule.shape.chunks * legs),
        "run it with PipelineRun::timed");
  EventText text(result.legs.size() + legs);
  text.label("process_name", {0, 0}, name);
  for (u64 leg = 0; leg < legs; ++leg)
    text.label("thread_name", {0, leg}, to_string(schedule.legs[leg]));
  for (u64 i = 0; i < result.legs.size(); ++i) {
    auto const [begin, end] = result.legs[i];
    text.slice({0, i % legs}, to_string(schedule.legs[i % legs].stage), "pipeline", begin * 1e6,
               (end - begin) * 1e6, fmt::format(R"("chunk":{})", i / legs));
  }
  return std::move(text).finish(fmt::format(R"("kernel":{},"seconds":{})", EventText::quoted(name),
                                            EventText::number(result.seconds)));
}

}  // namespace meshpost
