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
  if (std::exchange(expects_streams_, true)) return;
  for (auto const& [number, window] : windows_) furnish(*window);
}

// While mutex_ is held.
void EndpointCounters::furnish(HostCounters& window) {
  std::scoped_lock const lock(window.mutex);
  u64 const words = words_of(window);
  if (window.of_streams || words == 0) return;
  window.of_streams = take(words);
  std::fill_n(window.of_streams, words, 0);
}

u32* EndpointCounters::take(u64 words) {
  if (auto const found = free_.find(words); found != free_.end())
    return free_.extract(found).mapped();
  constexpr u64 usual = u64{64} << 10;
  if (chunks_.empty() || chunks_.back().memory.size() / sizeof(u32) - chunks_.back().used < words)
    chunks_.push_back({layout_.devices.front()->allocate(
        Bytes{std::max(usual, words * sizeof(u32))}, MemoryKind::pinned)});
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

u32* EndpointCounters::of_stream(HostCounters& window, StreamId stream) {
  u64 const own = stream.device - layout_.first_device;
  return window.of_streams + (own * StreamId::most + stream.number) * window.info.tags;
}

bool EndpointCounters::raise(u32 window, StreamId stream, Tag tag) {
  auto const found = find(window);
  if (!found || tag.value >= found->info.tags || stream.number >= StreamId::most ||
      !layout_.owns(stream.device))
    return false;
  {
    std::scoped_lock const all(mutex_);
    furnish(*found);
  }
  std::scoped_lock const lock(found->mutex);
  if (found->freed || !found->of_streams) return false;
  u32* const word = of_stream(*found, stream) + tag.value;
  memory::store(word, memory::load_relaxed(word) + 1, Order::system);
  return true;
}

}  // namespace meshpost::detail
