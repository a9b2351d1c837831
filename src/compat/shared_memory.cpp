#include "compat/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>

#include "meshpost/base/config.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/compat/detail/cuda_on_cpu.hpp"
#include "meshpost/compat/detail/shared_malloc.hpp"

namespace meshpost::compat {

constexpr u64 alignment = 256;  // as CUDA's

struct SharedMemory::Pool {
  char* base;
  u64 size;
  Offsets free;
  std::map<u64, u64> taken;  // offset -> size
  bool ended = false;
  std::shared_ptr<void> world;  // set when it has ended

  bool holds(void const* data) const {
    return static_cast<char const*>(data) >= base && static_cast<char const*>(data) < base + size;
  }
};

namespace {

struct All {
  std::mutex mutex;
  std::list<std::shared_ptr<SharedMemory::Pool>> parts;  // the last one is taken from
};
All& all() {
  static auto* const one = new All;
  return *one;
}

u64 rounded(std::size_t size) { return (size + alignment - 1) / alignment * alignment; }

}  // namespace

SharedMemory::SharedMemory(char* base, u64 size) : parts_(std::make_shared<Pool>()) {
  parts_->base = base, parts_->size = size;
  parts_->free.add(0, size);
  std::scoped_lock const lock(all().mutex);
  all().parts.push_back(parts_);
}

SharedMemory::~SharedMemory() { end(nullptr); }

void SharedMemory::end(std::shared_ptr<void> world) {
  std::scoped_lock const lock(all().mutex);
  if (parts_->ended) return;
  parts_->ended = true;
  if (!parts_->taken.empty()) parts_->world = std::move(world);
  else all().parts.remove(parts_);
}

bool take_shared(std::size_t size, void** data) {
  std::scoped_lock const lock(all().mutex);
  auto const found = std::find_if(all().parts.rbegin(), all().parts.rend(),
                                  [](auto const& one) { return !one->ended; });
  if (found == all().parts.rend()) return false;
  *data = nullptr;
  auto& parts = **found;
  u64 const wanted = rounded(size);
  auto const offset = wanted < size ? std::nullopt : parts.free.take(wanted, {alignment});
  if (!offset) {
    warn(fmt::format(
        "cudaMalloc: {} bytes don't fit into the free part of the {} bytes that a dCUDA program "
        "of several processes has; raise MESHPOST_DCUDA_MEMORY (MiB)",
        size, parts.size));
    return true;
  }
  parts.taken[*offset] = wanted;
  *data = parts.base + *offset;
  return true;
}

Given give_shared(void* data) {
  std::shared_ptr<void> world;  // ends outside of the lock
  {
    std::scoped_lock const lock(all().mutex);
    auto const found =
        std::ranges::find_if(all().parts, [&](auto const& one) { return one->holds(data); });
    if (found == all().parts.end()) return Given::elsewhere;
    auto& parts = **found;
    auto const part = parts.taken.find(static_cast<u64>(static_cast<char*>(data) - parts.base));
    if (part == parts.taken.end()) return Given::not_taken;
    parts.free.give(part->first, part->second);
    parts.taken.erase(part);
    if (parts.ended && parts.taken.empty()) {
      world = std::move(parts.world);
      all().parts.erase(found);
    }
  }
  return Given::yes;
}

void* allocate(std::size_t size) {
  void* data = nullptr;
  if (take_shared(size, &data)) return data;
  return rounded(size) < size ? nullptr : std::aligned_alloc(alignment, rounded(size));
}

void release(void* data) {
  if (give_shared(data) == Given::elsewhere) std::free(data);
}

u64 shared_memory_bytes(bool on_gpu) {
  u64 const wanted = Config::from_environment().dcuda_memory;
  return (wanted != 0 ? wanted : on_gpu ? 1024 : 64) << 20;
}

}  // namespace meshpost::compat
