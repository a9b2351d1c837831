#pragma once
#include <atomic>

#include "meshpost/base/types.hpp"

namespace meshpost::detail {

/// Counts its begin and its end: odd meanwhile. One at a time, so no read-modify-write.
class Round {
 public:
  explicit Round(std::atomic<u64>& rounds) : rounds_(rounds) { count(); }
  ~Round() { count(); }
  Round(Round const&) = delete;
  Round& operator=(Round const&) = delete;

 private:
  void count() {
    rounds_.store(rounds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  std::atomic<u64>& rounds_;
};

}  // namespace meshpost::detail
