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

constexpr u64 words_of_request = 16;  // its two share a cache line with no other's

Allocation WordPool::allocate() const {
  constexpr u64 requests = 4096;
  auto block =
      device_->allocate(Bytes{requests * words_of_request * sizeof(u32)}, MemoryKind::pinned);
  std::memset(block.data(), 0, block.size());
  return block;
}

void WordPool::add(Allocation block) {
  auto* const first = block.as<u32>();
  u64 const words = block.size() / sizeof(u32);
  blocks_.push_back(std::move(block));
  for (u64 i = 0; i < words; i += words_of_request) free_.push_back({first + i, first + i + 1, 0});
}

RequestWords WordPool::take() {
  auto words = free_.front();
  free_.pop_front();
  ++words.number;
  return words;
}

}  // namespace meshpost::compat::mp
