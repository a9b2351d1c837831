#include "copy/staging.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "copy/devices.hpp"
#include "fabric/numa.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost::copying {
namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable given_back;
  u64 lent = 0, kept = 0;                            // bytes
  std::map<u64, std::vector<Allocation>> free_ones;  // by size
};

Pool& pool(Place const& place) {
  static std::mutex mutex;
  static auto* const pools = new std::map<Place, Pool>;  // copies may end after main
  std::scoped_lock const lock(mutex);
  return (*pools)[place];
}

Allocation allocate(Place const& place, u64 size) {
  if (auto* const device = device_of(place))
    return device->allocate(Bytes{size}, MemoryKind::device);
  for (auto const& device : known_devices())
    if (!device->in_host_memory()) {
      fabric::OnNode const node(place.number);
      return device->allocate(Bytes{size}, MemoryKind::pinned);
    }
  return known_devices().front()->allocate(Bytes{size}, MemoryKind::pinned);
}

struct StreamPool {
  std::mutex mutex;
  std::map<Device*, std::vector<std::unique_ptr<Stream>>> free_ones;
};
StreamPool& streams() {
  static auto* const one = new StreamPool;
  return *one;
}

}  // namespace

Device* device_of(Place const& place) {
  if (place.on_host()) return nullptr;
  return backend(place.kind).open(place.number).get();
}

Buffers::Buffers(Place place, u64 size, u32 count) : place_(std::move(place)), size_(size) {
  auto& all = pool(place_);
  std::vector<Allocation> surplus;  // freed without the lock
  {
    std::unique_lock lock(all.mutex);
    all.given_back.wait(lock,
                        [&] { return all.lent == 0 || all.lent + size * count <= most_bytes; });
    all.lent += size * count;
    auto& fitting = all.free_ones[size];
    while (!fitting.empty() && memory_.size() < count) {
      memory_.push_back(std::move(fitting.back()));
      fitting.pop_back();
      all.kept -= size;
    }
    for (auto& [length, kept] : all.free_ones)
      while (all.lent + all.kept > most_bytes && !kept.empty()) {
        surplus.push_back(std::move(kept.back()));
        kept.pop_back();
        all.kept -= length;
      }
  }
  surplus.clear();
  try {
    while (memory_.size() < count) memory_.push_back(allocate(place_, size));
  } catch (...) {
    std::scoped_lock const lock(all.mutex);
    all.lent -= size * count;
    all.given_back.notify_all();
    throw;
  }
}

Buffers::~Buffers() {
  auto& all = pool(place_);
  std::scoped_lock const lock(all.mutex);
  all.lent -= size_ * memory_.size();
  all.kept += size_ * memory_.size();
  for (auto& one : memory_) all.free_ones[size_].push_back(std::move(one));
  all.given_back.notify_all();
}

LentStream::LentStream(Device& device) : device_(device) {
  {
    std::scoped_lock const lock(streams().mutex);
    auto& free_ones = streams().free_ones[&device];
    if (!free_ones.empty()) {
      stream_ = std::move(free_ones.back());
      free_ones.pop_back();
    }
  }
  if (!stream_) stream_ = device.make_stream();
}

LentStream::~LentStream() {
  std::scoped_lock const lock(streams().mutex);
  streams().free_ones[&device_].push_back(std::move(stream_));
}

}  // namespace meshpost::copying
