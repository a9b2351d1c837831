#include "net/rounds.hpp"

namespace meshpost::net {

bool Rounds::take_if_long() {
  std::scoped_lock const lock(mutex_);
  if (taken()) return false;
  u64 count = count_.load(std::memory_order_relaxed);
  if (count % 2 == 0 || count != seen_) {
    seen_ = count;
    lasts_.renew();
    return false;
  }
  if (!lasts_.ends()) return false;
  if (!count_.compare_exchange_strong(count, count | mark, std::memory_order_acquire,
                                      std::memory_order_relaxed))
    return false;
  taken_.store(true, std::memory_order_release);
  return true;
}

}  // namespace meshpost::net
