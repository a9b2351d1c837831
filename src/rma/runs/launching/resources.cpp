#include "rma/runs/launching/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace meshpost::detail {
namespace {

bool all_queue_launches(Layout const& layout) {
  return !layout.devices.empty() && std::ranges::all_of(layout.devices, [](auto const& device) {
    return backend(device->kind()).queues_launches();
  });
}

}  // namespace

RunResources::RunResources(Layout const& layout, Heap& heap, u32 trace_events)
    : layout_(layout),
      heap_(heap),
      devices_queue_(all_queue_launches(layout)),
      trace_(layout, trace_events) {
  words_ = heap_.allocate(sizeof(RunWords));
  RunWords words{};
  words.left_counts = heap_.allocate(RunWords::most_left * sizeof(LeftCount));
  for (u32 own = 0; own < layout_.own_count(); ++own)
    layout_.devices[own]->write(words_on(own), &words, Bytes{sizeof words});
}

void RunResources::follow_heap() {
  auto ranges = heap_.swept_ranges();
  if (ranges == followed_) return;
  std::vector<SweptRange> swept;
  swept.reserve(ranges.size());
  for (auto const& range : ranges)
    swept.push_back({range.offset, range.size, range.what == Heap::Swept::counters ? 1u : 0u, 0});
  if (swept.size() > RunWords::most_ranges)
    throw Error(Kind::out_of_memory, "symmetric heap",
                fmt::format("counters lie in {} ranges, of {} at most", swept.size(),
                            RunWords::most_ranges),
                "use fewer windows");
  u32 const count = static_cast<u32>(swept.size());
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    char* const words = words_on(own);
    auto& device = *layout_.devices[own];
    device.write(words + offsetof(RunWords, ranges), swept.data(),
                 Bytes{count * sizeof(SweptRange)});
    device.write(words + offsetof(RunWords, range_count), &count, Bytes{sizeof count});
  }
  followed_ = std::move(ranges);
}

// Numbers continue, so that values of earlier runs are not taken for those of later ones.
void RunResources::clear_counters(u32 last_run, u64 begun) {
  heap_.clear_swept();
  RunWords words{};
  words.ended = words.taken = last_run;
  words.arrived = last_run * layout_.ranks_per_device;
  words.met = last_run * layout_.ranks();
  words.swept = words.swept_before = last_run * layout_.device_count();
  words.begun = begun;
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    memory::store(&memory_[own].news.as<RunNews>()->ended, last_run, Order::system);
    layout_.devices[own]->write(words_on(own), &words, Bytes{offsetof(RunWords, range_count)});
  }
}

void RunResources::let_kernels_end() {
  for (auto const& [kind, resources] : launch_resources_)
    if (resources) resources->quiesce();
}

LaunchResources* RunResources::launch_resources(std::string_view kind) {
  auto const found = launch_resources_.find(kind);
  return found == launch_resources_.end() ? nullptr : found->second.get();
}

void DeviceRunMemory::expect_ranks() {
  auto* const of_ranks = reports.as<RankReport>();
  for (u64 r = 0; r < reports.size() / sizeof(RankReport); ++r) {
    of_ranks[r].state = static_cast<u32>(RankState::running);
    of_ranks[r].left = of_ranks[r].all_ended = of_ranks[r].begins = 0;
  }
}

void DeviceRunMemory::clear(Device& owner) {
  std::memset(static_cast<void*>(reports.as<RankReport>()), 0, reports.size());
  expect_ranks();
  *control.as<Control>() = {};
  std::memset(log_records.data(), 0, log_records.size());
  std::memset(log_tail.data(), 0, log_tail.size());
  std::memset(timers.data(), 0, timers.size());
  owner.fill(log_head.data(), 0, log_head.size());
}

void RunResources::make_memory() {
  for (auto const& device : layout_.devices) {
    DeviceRunMemory memory;
    u64 const ranks = layout_.ranks_per_device;
    memory.reports = device->allocate(Bytes{ranks * sizeof(RankReport)}, MemoryKind::pinned);
    memory.control = device->allocate(Bytes{256}, MemoryKind::pinned);
    memory.log_records =
        device->allocate(Bytes{LogRing::capacity * sizeof(LogRecord)}, MemoryKind::pinned);
    memory.log_tail = device->allocate(Bytes{256}, MemoryKind::pinned);
    memory.log_head = device->allocate(Bytes{256}, MemoryKind::device);
    memory.timers = device->allocate(Bytes{ranks * TimerBuffer::capacity * 2 * sizeof(u64)},
                                     MemoryKind::pinned);
    memory.news = device->allocate(Bytes{256}, MemoryKind::pinned);
    *memory.news.as<RunNews>() = {};
    memory.clear(*device);
    memory.base = device->allocate(Bytes{256}, MemoryKind::device);
    memory.state = device->allocate(Bytes{sizeof(RunState)}, MemoryKind::device);
    memory_.push_back(std::move(memory));
  }
  for (auto const& device : layout_.devices)
    if (auto& resources = launch_resources_[std::string(device->kind())]; !resources)
      resources = backend(device->kind()).launch_resources();
  if (physical_devices(layout_.devices).size() < layout_.devices.size()) {
    auto const reader = std::ranges::find_if_not(layout_.devices, &Device::in_host_memory);
    auto& owner = reader == layout_.devices.end() ? *layout_.devices.front() : **reader;
    split_states_ =
        owner.allocate(Bytes{layout_.devices.size() * sizeof(RunState)}, MemoryKind::pinned);
  }
}

}  // namespace meshpost::detail
