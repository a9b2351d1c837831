#include "meshpost/trace/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trace/event_text.hpp"

namespace meshpost {
namespace {

using trace::EventText;

constexpr u64 shortest_ready_ns = 200;  // a shorter one is a turn of the scheduler itself

double to_us(u64 from, u64 to) { return to > from ? static_cast<double>(to - from) * 1e-3 : 0.0; }

std::string arguments_of(TraceEvent const& event) {
  std::string all;
  auto const add = [&](char const* name, auto value) {
    all += fmt::format(R"({}"{}":{})", all.empty() ? "" : ",", name, value);
  };
  if (event.peer != Note::no_rank) add("peer", event.peer);
  if (event.bytes != 0) add("bytes", event.bytes);
  if (event.window != 0) add("window", event.window), add("tag", event.tag);
  if (event.end == 0) add("ended", false);
  return all;
}

// A rank without a core can't end an operation. So each such time lies within one operation.
void add_ready(EventText& text, Timeline const& timeline, TimelineRow const& row) {
  u64 before = timeline.begin;
  for (auto const& slice : row.cores) {
    u64 const ready = std::max(slice.ready, before);
    if (slice.begin > ready + shortest_ready_ns)
      text.slice({row.device, row.rank}, "ready", "ready", to_us(timeline.begin, ready),
                 to_us(ready, slice.begin));
    before = slice.end;
  }
}

void add_row(EventText& text, Timeline const& timeline, TimelineRow const& row) {
  u64 done = timeline.begin, rank_end = 0;
  trace::TextRow const at{row.device, row.rank};
  auto const add_compute = [&](u64 from, u64 to) {
    if (to > from)
      text.slice(at, "compute", "compute", to_us(timeline.begin, from), to_us(from, to));
  };
  for (auto const& event : row.events) {
    if (event.operation == Operation::kernel) {
      done = std::max(done, event.begin);
      rank_end = event.end;
      continue;
    }
    if (event.operation == Operation::mark) {
      text.mark(at, event.name, to_us(timeline.begin, event.begin));
      continue;
    }
    u64 const end = event.end == 0 ? timeline.end : event.end;
    add_compute(done, event.begin);
    text.slice(at, to_string(event.operation), "rma", to_us(timeline.begin, event.begin),
               to_us(event.begin, end), arguments_of(event));
    done = std::max(done, end);
  }
  if (row.lost == 0) add_compute(done, rank_end);
  add_ready(text, timeline, row);
}

}  // namespace

std::string_view to_string(Operation operation) {
  static constexpr std::array<std::string_view, static_cast<u32>(Operation::count)> names = {
      "none",      "put",    "put_notify", "notify",         "get",        "flush",
      "publish",   "wait",   "test",       "put_value",      "wait_until", "barrier",
      "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "scratch",
      "log",       "mark",   "timer",      "fail",           "kernel",     "local",
      "id",        "size",   "world_rank", "roles"};
  return names.at(static_cast<u32>(operation));
}

std::optional<double> cores_in_use(Timeline const& timeline) {
  if (timeline.cores == 0 || timeline.end <= timeline.begin) return std::nullopt;
  u64 used = 0;
  for (auto const& row : timeline.rows)
    for (auto const& slice : row.cores) used += slice.end - slice.begin;
  return static_cast<double>(used) /
         (static_cast<double>(timeline.cores) * static_cast<double>(timeline.end - timeline.begin));
}

std::string to_perfetto(Timeline const& timeline) {
  u64 events = timeline.devices.size();
  for (auto const& row : timeline.rows) events += 1 + 2 * row.events.size() + row.cores.size();
  EventText text(events);
  for (u32 device = 0; device < timeline.devices.size(); ++device)
    text.label("process_name", {device, 0}, timeline.devices[device]);
  u64 lost = 0;
  for (auto const& row : timeline.rows) {
    text.label("thread_name", {row.device, row.rank}, "rank " + std::to_string(row.rank));
    add_row(text, timeline, row);
    lost += row.lost;
  }
  double const seconds = static_cast<double>(timeline.end - timeline.begin) * 1e-9;
  auto facts = fmt::format(R"("kernel":{},"lost_events":{},"seconds":{})",
                           EventText::quoted(timeline.kernel), lost, EventText::number(seconds));
  if (auto const share = cores_in_use(timeline))
    facts +=
        fmt::format(R"(,"cores":{},"cores_in_use":{})", timeline.cores, EventText::number(*share));
  return std::move(text).finish(facts);
}

}  // namespace meshpost
