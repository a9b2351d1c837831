#include "rma/windows/endpoint_counters.hpp"

#include <algorithm>
#include <utility>

#include "meshpost/device/block.hpp"

namespace meshpost::detail {

void EndpointCounters::know(std::shared_ptr<HostCounters> const& window) {
  std::scoped_lock const lock(mutex_);
  if (expects_streams_) furnish(*window);
  windows_[window->info.number] = window;
}

void EndpointCounters::forget(u32 window) {
  std::scoped_lock const lock(mutex_);
  auto const found = windows_.extract(window);
  if (found.empty()) return;
  auto& counters = *found.mapped();
  std::scoped_lock const of_window(counters.mutex);
  counters.freed = true;
  if (counters.of_streams) free_.emplace(words_of(counters), counters.of_streams);
  counters.of_streams = nullptr;
}

void EndpointCounters::expect_streams() {
  std::scoped_lock const lock(mutex_);
  if (expects_streams_) return;
  for (auto const& [number, window] : windows_) furnish(*window);
  expects_streams_ = true;
}

// While mutex_ is held.
void EndpointCounters::furnish(HostCounters& window) {
  std::scoped_lock const lock(window.mutex);
  u64 const words = words_of(window);
  if (window.of_streams || words == 0) return;
  window.of_streams = take(words);
  window.early.resize(words);
  std::ranges::copy(std::exchange(window.early, {}), window.of_streams);
}

// CPU devices read all memory of the host, GPUs only memory that they pin.
Device& EndpointCounters::pinning_device() const {
  auto const gpu = std::ranges::find_if_not(layout_.devices, &Device::in_host_memory);
  return gpu == layout_.devices.end() ? *layout_.devices.front() : **gpu;
}

u32* EndpointCounters::take(u64 words) {
  if (auto const found = free_.find(words); found != free_.end())
    return free_.extract(found).mapped();
  constexpr u64 usual = u64{64} << 10;
  if (chunks_.empty() || chunks_.back().memory.size() / sizeof(u32) - chunks_.back().used < words)
    chunks_.push_back({pinning_device().allocate(Bytes{std::max(usual, words * sizeof(u32))},
                                                 MemoryKind::pinned)});
  auto& chunk = chunks_.back();
  return chunk.memory.as<u32>() + std::exchange(chunk.used, chunk.used + words);
}

std::shared_ptr<HostCounters> EndpointCounters::find(u32 window) {
  std::scoped_lock const lock(mutex_);
  auto const found = windows_.find(window);
  return found == windows_.end() ? nullptr : found->second;
}

bool EndpointCounters::raise(u32 window, Tag tag) {
  auto const found = find(window);
  if (!found || tag.value >= found->info.tags) return false;
  std::scoped_lock const lock(found->mutex);
  ++found->raised[tag.value];
  return true;
}

u64 EndpointCounters::place_of(HostCounters const& window, StreamId stream) const {
  u64 const own = stream.device - layout_.first_device;
  return (own * StreamId::most + stream.number) * window.info.tags;
}

u32* EndpointCounters::of_stream(HostCounters& window, StreamId stream) const {
  return window.of_streams + place_of(window, stream);
}

bool EndpointCounters::raise(u32 window, StreamId stream, Tag tag) {
  auto const found = find(window);
  if (!found || tag.value >= found->info.tags || stream.number >= StreamId::most ||
      !layout_.owns(stream.device))
    return false;
  std::scoped_lock const lock(found->mutex);
  if (found->freed) return false;
  if (!found->of_streams) {
    found->early.resize(words_of(*found));
    ++found->early[place_of(*found, stream) + tag.value];
    return true;
  }
  u32* const word = of_stream(*found, stream) + tag.value;
  memory::store(word, memory::load_relaxed(word) + 1, Order::system);
  return true;
}

}  // namespace meshpost::detail
