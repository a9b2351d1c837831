#include "rma/windows/endpoint_counters.hpp"

#include "meshpost/device/block.hpp"

namespace meshpost::detail {

void EndpointCounters::know(std::shared_ptr<HostCounters> const& window) {
  std::scoped_lock const lock(mutex_);
  windows_[window->info.number] = window;
}

void EndpointCounters::forget(u32 window) {
  std::scoped_lock const lock(mutex_);
  windows_.erase(window);
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

// A GPU may be full of blocks that wait for this. So the host adds by no kernel: only it writes that
// word, and copies do.
bool EndpointCounters::raise(u32 window, StreamId stream, Tag tag) {
  auto const found = find(window);
  if (!found || tag.value >= found->info.tags || stream.number >= StreamId::most ||
      !layout_.owns(stream.device))
    return false;
  auto const& info = found->info;
  auto& device = layout_.own(stream.device);
  auto const word_in = [&](WindowInfo::StreamArray array) {
    return reinterpret_cast<u32*>(
               heap_.at(stream.device, info.stream_counters(stream.number, array))) +
           tag.value;
  };
  std::scoped_lock const lock(found->mutex);
  if (found->freed) return false;
  if (device.in_host_memory()) {
    memory::add(word_in(WindowInfo::raised), 1, Order::system);
    return true;
  }
  if (found->of_streams.empty())
    found->of_streams.resize(u64{layout_.own_count()} * StreamId::most * info.tags);
  u64 const own = stream.device - layout_.first_device;
  u32& value = found->of_streams[(own * StreamId::most + stream.number) * info.tags + tag.value];
  u32 const next = value + 1;
  device.write(word_in(WindowInfo::raised_by_host), &next, Bytes{sizeof next});
  value = next;
  return true;
}

}  // namespace meshpost::detail
