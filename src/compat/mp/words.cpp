#include "compat/mp/words.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {

bool RequestWords::has_rung() const {
  return static_cast<i32>(memory::load_acquire(rung) - number) >= 0;
}
void RequestWords::ring() const { memory::store(rung, number, Order::system); }
void RequestWords::finish() const { memory::store(done, number, Order::system); }

void keep_for_ever(Allocation memory) {
  static std::mutex mutex;
  static auto* const all = new std::vector<Allocation>;
  std::scoped_lock const lock(mutex);
  all->push_back(std::move(memory));
}

RequestWords WordPool::take() {
  if (free_.empty()) {
    constexpr u64 requests = 4096, line = 16;  // words; a request's two share a cache line
    auto& block = blocks_.emplace_back(
        device_->allocate(Bytes{requests * line * sizeof(u32)}, MemoryKind::pinned));
    std::memset(block.data(), 0, block.size());
    for (u64 i = 0; i < requests; ++i)
      free_.push_back({block.as<u32>() + i * line, block.as<u32>() + i * line + 1, 0});
  }
  auto words = free_.front();
  free_.pop_front();
  ++words.number;
  return words;
}

}  // namespace meshpost::compat::mp
