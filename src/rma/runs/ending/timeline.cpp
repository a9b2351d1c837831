#include "rma/runs/ending/timeline.hpp"

#include <algorithm>
#include <cstring>

#include "base/host_hooks.hpp"
#include "meshpost/device/backend.hpp"
#include "trace/timeline_writer.hpp"

namespace meshpost::detail {
namespace {

// Two clocks drift apart by some millionths: by some us in this time. Aligning a GPU's takes about
// a millisecond.
constexpr u64 aligned_for_ns = 250'000'000;

// The first events of each rank of a device, as many for each as one of them has; one copy.
std::vector<TraceEvent> read_events(Device& device, DeviceTrace const& trace, u32 capacity,
                                    u64 most, u64 ranks) {
  std::vector<TraceEvent> events(most * ranks);
  if (events.empty()) return events;
  PitchedCopy rows;
  rows.target = events.data();
  rows.source = trace.events.data();
  rows.width = rows.target_row = most * sizeof(TraceEvent);
  rows.source_row = u64{capacity} * sizeof(TraceEvent);
  rows.rows = ranks;
  if (device.in_host_memory()) {
    for_each_row(rows, [](void* target, void const* source, u64 width) {
      std::memcpy(target, source, width);
    });
  } else {
    trace.stream->copy(rows);
    trace.stream->synchronize();
  }
  return events;
}

}  // namespace

TraceBuffer RunTrace::buffer(u32 own_device, u32 run) const {
  auto const& device = devices[own_device];
  return {device.events.as<TraceEvent>(), device.used.as<TraceUse>(), capacity, run};
}

Timeline TracedRun::collect() const {
  Timeline timeline{kernel, layout->names, begin, end, {}, 0};
  u32 const capacity = trace->capacity, ranks = layout->ranks_per_device;
  bool cores_are_known = true;  // GPUs have none, and then rows of CPU devices get none, either
  for (u32 d = 0; d < layout->own_count(); ++d) {
    auto& device = *layout->devices[d];
    auto const& recorded = trace->devices[d];
    std::vector<TraceUse> used(ranks);
    device.read(used.data(), recorded.used.data(), Bytes{used.size() * sizeof(TraceUse)});
    u32 most = 0;
    for (auto& of_rank : used) {
      if (of_rank.run != number) of_rank.events = 0;  // it has not begun
      most = std::max(most, std::min(of_rank.events, capacity));
    }
    auto const events = read_events(device, recorded, capacity, most, ranks);
    auto const offset = static_cast<u64>(clock_offsets[d]);
    u32 const number_in_world = layout->first_device + d;
    for (u32 r = 0; r < ranks; ++r) {
      TimelineRow row{number_in_world, number_in_world * ranks + r, {}, 0, {}};
      if (r < recorded.cores.ranks.size()) row.cores = recorded.cores.ranks[r];
      auto const first = events.begin() + static_cast<std::ptrdiff_t>(u64{r} * most);
      row.events.assign(first, first + std::min(used[r].events, capacity));
      row.lost = used[r].events - row.events.size();
      for (auto& event : row.events) {
        event.begin += offset;
        if (event.end != 0) event.end += offset;
      }
      timeline.rows.push_back(std::move(row));
    }
    cores_are_known &= recorded.cores.complete();
  }
  if (cores_are_known && !trace->devices.empty()) timeline.cores = trace->devices[0].cores.cores;
  return timeline;
}

TraceMemory::TraceMemory(Layout const& layout, u32 capacity)
    : layout_(layout), capacity_(std::max(1u, capacity)) {
  free_.reserve(most_);  // so that give_back() can't fail
}

std::unique_ptr<RunTrace> TraceMemory::make() const {
  hooks::at("make memory for a timeline");
  auto trace = std::make_unique<RunTrace>();
  trace->capacity = capacity_;
  u64 const ranks = layout_.ranks_per_device;
  for (auto const& device : layout_.devices) {
    DeviceTrace one{
        device->allocate(Bytes{ranks * capacity_ * sizeof(TraceEvent)}, MemoryKind::device),
        device->allocate(Bytes{ranks * sizeof(TraceUse)}, MemoryKind::device)};
    device->fill(one.used.data(), 0, one.used.size());  // there is no run 0
    if (device->in_host_memory()) {
      one.cores.ranks.resize(ranks);
      for (auto& slices : one.cores.ranks) slices.reserve(capacity_);
    } else {
      one.stream = device->make_stream();
    }
    trace->devices.push_back(std::move(one));
  }
  return trace;
}

std::shared_ptr<RunTrace> TraceMemory::take() {
  std::unique_ptr<RunTrace> one;
  std::unique_lock lock(mutex_);
  if (free_.empty() && made_ < most_) try {
      one = make();
      ++made_;
    } catch (std::exception const&) {
      if (made_ == 0) throw;
      most_ = made_;
    }
  if (!one && free_.empty()) {
    lock.unlock();
    trace::TimelineWriter::of_process().finish();
    lock.lock();
    changed_.wait(lock, [this] { return !free_.empty(); });
  }
  if (!one) {
    one = std::move(free_.back());
    free_.pop_back();
  }
  lock.unlock();
  for (auto& device : one->devices) device.cores.clear();
  return {one.release(), [this](RunTrace* trace) { give_back(trace); }};
}

void TraceMemory::give_back(RunTrace* trace) {
  {
    std::scoped_lock const lock(mutex_);
    free_.emplace_back(trace);
  }
  changed_.notify_all();
}

std::vector<i64> TraceMemory::clock_offsets() {
  u64 const now = memory::clock_ns();
  if (!offsets_.empty() && now - aligned_at_ < aligned_for_ns) return offsets_;
  std::map<Device const*, i64> known;  // by physical device: one clock, aligned once
  std::vector<i64> offsets;
  for (auto const& of_world : layout_.devices) {
    auto& device = *physical(of_world);
    auto const [offset, first] = known.try_emplace(&device, 0);
    if (first) offset->second = backend(device.kind()).clock_offset(device);
    offsets.push_back(offset->second);
  }
  offsets_ = std::move(offsets);
  aligned_at_ = now;
  return offsets_;
}

}  // namespace meshpost::detail
