#include "net/rounds.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace meshpost::net {

bool Rounds::take_if_long() {
  if (taken_) return true;
  auto const now = std::chrono::steady_clock::now();
  auto const pause = std::min<std::chrono::steady_clock::duration>(
      now - std::exchange(looked_, now), longest_pause);
  u64 count = count_.load(std::memory_order_relaxed);
  if (count % 2 == 0 || count != seen_) {
    seen_ = count, lasts_ = {};
    return false;
  }
  lasts_ += pause;
  if (lasts_ <= longest) return false;
  taken_ = count_.compare_exchange_strong(count, count | mark, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  return taken_;
}

void keep_for_ever(void const* what) {
  static auto* const mutex = new std::mutex;
  static auto* const all = new std::vector<void const*>;
  std::scoped_lock const lock(*mutex);
  all->push_back(what);
}

}  // namespace meshpost::net
