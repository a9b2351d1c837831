#include "trace/host_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trace/event_text.hpp"

namespace meshpost::trace {
namespace {

char const* category_of(HostCallKind kind) {
  switch (kind) {
    case HostCallKind::queue: return "queue";
    case HostCallKind::launch: return "launch";
    case HostCallKind::wait: return "sync";
    case HostCallKind::write: return "write";
    case HostCallKind::read: return "read";
    case HostCallKind::notify: return "notify";
    default: return "other";
  }
}

double us(u64 from, u64 to) { return to > from ? static_cast<double>(to - from) * 1e-3 : 0.0; }

std::string arguments_of(HostCallRecord const& call) {
  return fmt::format(
      R"("of":{},"at":{})", EventText::quoted(call.subject),
      EventText::quoted(fmt::format("{}:{}", call.where.file_name(), call.where.line())));
}

}  // namespace

HostTimeline::HostTimeline(u32 capacity) : capacity_(std::max(1u, capacity)) {}

void HostTimeline::called(HostCallRecord const& call) {
  std::scoped_lock const lock(mutex_);
  // Threads of the library use devices too: they get no row for that.
  bool const of_device =
      call.operation.starts_with("Device::") || call.operation.starts_with("Stream::");
  if (of_device && !numbers_.contains(std::this_thread::get_id())) return;
  auto const [found, first] =
      numbers_.try_emplace(std::this_thread::get_id(), static_cast<u32>(threads_.size()));
  if (first) threads_.emplace_back();
  auto& row = threads_[found->second];
  if (row.calls.size() < capacity_) row.calls.push_back(call);
  else ++row.lost;
}

void HostTimeline::add_row(StreamRow row) {
  std::scoped_lock const lock(mutex_);
  rows_.push_back(std::move(row));
}

void HostTimeline::add_run(std::string const& kernel, u64 begin, u64 end) {
  std::scoped_lock const lock(mutex_);
  try {
    if (runs_.spans.size() < capacity_) runs_.spans.push_back({kernel, "run", begin, end});
    else ++runs_.lost;
  } catch (std::bad_alloc const&) {  // the run itself has succeeded
    ++runs_.lost;
  }
}

std::string HostTimeline::to_perfetto() const {
  std::scoped_lock const lock(mutex_);
  auto rows = rows_;
  if (!runs_.spans.empty()) rows.push_back(runs_);
  u64 zero = ~u64{0}, events = 0, lost = 0;
  for (auto const& row : threads_) {
    for (auto const& call : row.calls) zero = std::min(zero, call.begin);
    events += row.calls.size(), lost += row.lost;
  }
  for (auto const& row : rows) {
    for (auto const& span : row.spans) zero = std::min(zero, span.begin);
    events += row.spans.size(), lost += row.lost;
  }
  EventText text(events + rows.size());
  text.label("process_name", {0, 0}, "host");
  for (u32 thread = 0; thread < threads_.size(); ++thread) {
    text.label("thread_name", {0, thread}, fmt::format("host thread {}", thread));
    for (auto const& call : threads_[thread].calls)
      text.slice({0, thread}, call.operation, category_of(call.kind), us(zero, call.begin),
                 us(call.begin, call.end), arguments_of(call));
  }
  std::map<std::string, u64> devices;
  for (u32 number = 0; number < rows.size(); ++number) {
    auto const& row = rows[number];
    auto const [device, first] = devices.try_emplace(row.device, devices.size() + 1);
    TextRow const at{device->second, number};
    if (first) text.label("process_name", at, row.device);
    text.label("thread_name", at, row.name);
    for (auto const& span : row.spans)
      text.slice(at, span.name, span.category, us(zero, span.begin), us(span.begin, span.end),
                 span.bytes == 0 ? "" : fmt::format(R"("bytes":{})", span.bytes));
  }
  return std::move(text).finish(fmt::format(R"("host":1,"lost_events":{})", lost));
}

}  // namespace meshpost::trace
