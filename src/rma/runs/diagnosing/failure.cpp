#include "rma/runs/diagnosing/failure.hpp"

#include <fmt/format.h>

#include "meshpost/trace/timeline.hpp"
#include "rma/windows/element_range.hpp"

namespace meshpost::detail {
namespace {

struct FaultText {
  std::string cause, remedy;
};

std::string count_of(u64 count) {
  return count == ~u64{0} ? "more than there are" : fmt::format("{}", count);
}

FaultText fault_text_of(RankReport const& report, Names const& names) {
  u64 const a = report.details[0], b = report.details[1], c = report.details[2];
  switch (report.fault) {
    case Fault::failed:
      return {fmt::format("it called fail(\"{}\")", report.text), "see the kernel"};
    case Fault::threw:
      return {fmt::format("an exception left the kernel: {}", report.text),
              "catch it in the kernel"};
    case Fault::target:
      return {fmt::format("rank {} does not exist in a communicator of {} ranks", a, b),
              fmt::format("use ranks from 0 to {}", b - 1)};
    case Fault::tag:
      return {fmt::format("tag {} does not exist in a window of {} tags", a, b),
              b == 0 ? "create the window with Tags"
                     : fmt::format("use tags from 0 to {}, or create the window with more", b - 1)};
    case Fault::range:
      return a == ~u64{0} ? FaultText{"the target is a subspan that leaves its span",
                                      "check its offset and size"}
                          : FaultText{fmt::format("{} in a part of {}", named_elements(a, b), c),
                                      "stay inside the part, or create a larger window"};
    case Fault::size:
      return {fmt::format("{} elements were given where {} fit", count_of(a), count_of(b)),
              "give spans of fitting sizes"};
    case Fault::span:
      return {"a local span is a subspan that leaves its span",
              "check the subspan's offset and size, and that its window was made"};
    case Fault::foreign_window:
      return {
          fmt::format("a window or communicator of world {} was used in a run of world {}", a, b),
          a == 0 ? "it was never created: make it with World::window"
                 : "use those of the World that runs the kernel"};
    case Fault::unreachable:
      return {"this rank is in no group of the communicator",
              "only ranks with a color of 0 or more may use it"};
    case Fault::alignment:
      return {fmt::format("address {:#x} is not a multiple of {}", a, b),
              "align the word to its size"};
    case Fault::null_pointer:
      return {fmt::format("{} elements were named at a null pointer", a),
              "give a span that points to memory"};
    case Fault::scratch:
      return {fmt::format("{} bytes of scratch are used, {} were given", a, b),
              "set Launch::scratch"};
    case Fault::timers:
      return a == 0 ? FaultText{"stop_timer() without start_timer()", "start it first"}
                    : FaultText{fmt::format("more than {} intervals were timed", a), "time fewer"};
    case Fault::delivery:
      return {report.text, "consume the notification first, or a later one from the same rank"};
    case Fault::hook: return {fmt::format("a test hook ended it at {}", report.text), ""};
    case Fault::argument:
      return {fmt::format("{} is {}", report.text, static_cast<i64>(a)),
              fmt::format("it may be {} to {}", static_cast<i64>(b), static_cast<i64>(c))};
    case Fault::source:
      return {fmt::format("the source is bytes {} to {} of this rank's own part, which has {}",
                          static_cast<i64>(a), static_cast<i64>(a + b - 1), c),
              "put from inside the window, or create a larger one"};
    case Fault::misuse: return {report.text, "see the operation's documentation"};
    case Fault::layout:
      return {"a layout is a subarray that leaves its bounds, or a grid of 2^64 elements or more",
              "check the subarray's offset and extents"};
    case Fault::extents:
      return {fmt::format("the target has {} elements in {}, the source {}", b, "xyz"[a], c),
              "give both layouts the same extents; strides may differ"};
    case Fault::reach:
      return {fmt::format("the {}'s layout reaches over {} elements of a span that has {}",
                          report.text, count_of(a), count_of(b)),
              "use smaller offsets, extents or strides, or a larger span"};
    case Fault::interleave:
      return {fmt::format("the target's strides {}, {} and {} let elements lie on or between each "
                          "other",
                          a, b, c),
              "make each stride larger than what all smaller ones span: extents times stride"};
    case Fault::freed_window:
      return {fmt::format("{} was freed before this run", names.window(static_cast<u32>(a))),
              "free it behind the last run that uses it; give the kernel the window made instead"};
    case Fault::none: break;
  }
  return {"it ended itself", ""};
}

}  // namespace

Error to_error(RankReport const& report, u32 rank, Names const& names) {
  auto const fault_text = fault_text_of(report, names);
  auto const operation =
      to_string(report.fault == Fault::threw ? Operation::kernel : report.subject.operation);
  auto const window = report.subject.window == 0 ? "" : names.window(report.subject.window);
  return {
      Kind::kernel_failed,
      fmt::format("{}{} in {} on {}", operation, window.empty() ? "" : fmt::format(", {},", window),
                  names.kernel, names.rank(rank)),
      fault_text.cause, fault_text.remedy};
}

}  // namespace meshpost::detail
