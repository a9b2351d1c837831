#include "meshpost/trace/timeline.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace meshpost {
namespace {

using nlohmann::json;

double to_us(u64 from, u64 to) { return to > from ? static_cast<double>(to - from) * 1e-3 : 0.0; }

json name_of(char const* what, u32 device, u32 rank, std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", device},
          {"tid", rank},
          {"args", {{"name", std::move(name)}}}};
}

json slice(std::string_view name, char const* category, TimelineRow const& row, double begin,
           double length) {
  return {{"ph", "X"},       {"name", name}, {"cat", category}, {"pid", row.device},
          {"tid", row.rank}, {"ts", begin},  {"dur", length}};
}

void add_row(json& events, Timeline const& timeline, TimelineRow const& row) {
  u64 done = timeline.begin, rank_end = 0;
  auto const add_compute = [&](u64 from, u64 to) {
    if (to > from)
      events.push_back(
          slice("compute", "compute", row, to_us(timeline.begin, from), to_us(from, to)));
  };
  for (auto const& event : row.events) {
    if (event.operation == Operation::kernel) {
      done = std::max(done, event.begin);
      rank_end = event.end;
      continue;
    }
    if (event.operation == Operation::mark) {
      events.push_back({{"ph", "i"},
                        {"s", "t"},
                        {"name", event.name},
                        {"cat", "mark"},
                        {"pid", row.device},
                        {"tid", row.rank},
                        {"ts", to_us(timeline.begin, event.begin)}});
      continue;
    }
    u64 const end = event.end == 0 ? timeline.end : event.end;
    add_compute(done, event.begin);
    auto one = slice(to_string(event.operation), "rma", row, to_us(timeline.begin, event.begin),
                     to_us(event.begin, end));
    if (event.peer != Note::no_rank) one["args"]["peer"] = event.peer;
    if (event.bytes != 0) one["args"]["bytes"] = event.bytes;
    if (event.window != 0) one["args"]["window"] = event.window, one["args"]["tag"] = event.tag;
    if (event.end == 0) one["args"]["ended"] = false;
    events.push_back(std::move(one));
    done = std::max(done, end);
  }
  if (row.lost == 0) add_compute(done, rank_end);
}

}  // namespace

std::string_view to_string(Operation operation) {
  static constexpr std::array<std::string_view, static_cast<u32>(Operation::count)> names = {
      "none",      "put",    "put_notify", "notify",         "get",        "flush",
      "publish",   "wait",   "test",       "put_value",      "wait_until", "barrier",
      "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "scratch",
      "log",       "mark",   "timer",      "fail",           "kernel"};
  return names.at(static_cast<u32>(operation));
}

std::string to_perfetto(Timeline const& timeline) {
  json events = json::array();
  for (u32 device = 0; device < timeline.devices.size(); ++device)
    events.push_back(name_of("process_name", device, 0, timeline.devices[device]));
  u64 lost = 0;
  for (auto const& row : timeline.rows) {
    events.push_back(
        name_of("thread_name", row.device, row.rank, "rank " + std::to_string(row.rank)));
    add_row(events, timeline, row);
    lost += row.lost;
  }
  json const whole = {{"traceEvents", std::move(events)},
                      {"displayTimeUnit", "ns"},
                      {"otherData",
                       {{"kernel", timeline.kernel},
                        {"lost_events", lost},
                        {"seconds", static_cast<double>(timeline.end - timeline.begin) * 1e-9}}}};
  // A mark may be cut in the middle of a character.
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace meshpost
