#include "trace/sync_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "meshpost/base/events.hpp"

namespace meshpost::trace {
namespace {

constexpr std::size_t most_waits = 64;  // of a thread, between two operations

// Paths differ from build to build, and are long.
std::string line_of(std::source_location const& where) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);  // npos + 1 is 0
  return fmt::format("{}:{}", file, where.line());
}

struct Switch {
  std::mutex mutex;
  u32 worlds = 0;
  std::shared_ptr<SyncReport> report;
};
Switch& the_switch() {
  static auto* const one = new Switch;
  return *one;
}

double us(u64 ns) { return static_cast<double>(ns) * 1e-3; }

}  // namespace

void SyncReport::switch_on() {
  std::scoped_lock const lock(the_switch().mutex);
  if (the_switch().worlds == 0) {
    auto report = std::make_shared<SyncReport>();
    add_host_observer(report);
    the_switch().report = std::move(report);
  }
  ++the_switch().worlds;
}

void SyncReport::switch_off() {
  std::shared_ptr<SyncReport> report;
  {
    std::scoped_lock const lock(the_switch().mutex);
    report = the_switch().report;
    if (--the_switch().worlds == 0) {
      remove_host_observer(report);
      the_switch().report.reset();
    }
  }
  for (auto const& line : report->take()) warn(line);
}

void SyncReport::called(HostCallRecord const& call) {
  Place const place{call.operation, call.where};
  std::scoped_lock const lock(mutex_);
  auto& thread = threads_[std::this_thread::get_id()];
  if (!waits(call.kind)) {
    if (call.kind != HostCallKind::notify) queued(thread, place);
    return;
  }
  if (thread.last && thread.waits.size() < most_waits)
    thread.waits.push_back({place, call.subject, call.end - call.begin});
}

void SyncReport::queued(Thread& thread, Place const& next) {
  for (auto const& wait : thread.waits) {
    auto& found = found_[{
        wait.subject, fmt::format("{} ({})", line_of(wait.place.where), wait.place.operation),
        fmt::format("{} ({})", thread.last->operation, line_of(thread.last->where)),
        fmt::format("{} ({})", next.operation, line_of(next.where))}];
    ++found.count;
    found.total += wait.length;
    found.worst = std::max(found.worst, wait.length);
  }
  thread.waits.clear();
  thread.last = next;
}

std::vector<std::string> SyncReport::take() {
  std::vector<std::pair<Key, Found>> all;
  {
    std::scoped_lock const lock(mutex_);
    all.assign(found_.begin(), found_.end());
    found_.clear();
    threads_.clear();
  }
  std::ranges::sort(all, std::greater{}, [](auto const& one) { return one.second.total; });
  std::vector<std::string> lines;
  for (auto const& [key, found] : all) {
    if (lines.size() == most_places) {
      lines.push_back(
          fmt::format("the host waited at {} further places", all.size() - most_places));
      break;
    }
    auto const& [subject, at, before, behind] = key;
    std::string const times = found.count == 1
                                  ? fmt::format("{:.1f} us", us(found.total))
                                  : fmt::format("{} times, {:.1f} us in all, at most {:.1f} us",
                                                found.count, us(found.total), us(found.worst));
    lines.push_back(
        fmt::format("the host waited for {} between {} and {}, at {}: {}; let streams and "
                    "notifications order the work, or wait once behind the last operation",
                    subject.empty() ? "devices" : subject, before, behind, at, times));
  }
  return lines;
}

}  // namespace meshpost::trace
