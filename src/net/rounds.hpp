#pragma once
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/kept.hpp"
#include "base/patience.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost::net {

/// The thread that is in an engine, one at a time; and its supervisors, other threads. They may
/// find that it does not come back. Then one of them takes what it holds away from it.
///
/// end() and taking are read-modify-writes of one word, so just one of them comes first: either the
/// thread has left, and keeps what is its own; or it is taken, end() says so, and all that the
/// thread did before begin() is seen by the supervisors, which from then on are the only ones to
/// touch it, one at a time.
class Rounds {
 public:
  /// `most`: what a round may last; 0: for ever.
  explicit Rounds(std::chrono::milliseconds most = longest) : lasts_(most, longest_pause) {}

  /// By the thread. A round is under way: the count is odd.
  void begin() {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// Whether the thread may go on; false: this round was taken away meanwhile.
  bool end() {
    u64 now = count_.load(std::memory_order_relaxed) & ~mark;
    return count_.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
  }

  /// By supervisors, again and again: takes a round that has been under way for the longest time,
  /// of which a pause between two looks counts for no more than `longest_pause`: this process may
  /// have been stopped. \returns whether this call has taken it
  bool take_if_long();
  bool taken() const { return taken_.load(std::memory_order_acquire); }

  /// Of engines whose calls may never come back (Engine::outlives_peers): rounds take microseconds,
  /// or as long as a crowded host keeps a thread from its core.
  static constexpr std::chrono::milliseconds longest{500};
  static constexpr auto longest_pause = Patience::usual_gap;

 private:
  static constexpr u64 mark = u64{1} << 63;

  std::atomic<u64> count_{0};
  std::atomic<bool> taken_{false};  // never false again
  std::mutex mutex_;                // of supervisors: of what follows
  u64 seen_ = 0;                    // a count, and how long it has been that
  Patience lasts_;
};

using meshpost::keep_for_ever;  ///< for what a thread that hangs may still touch

}  // namespace meshpost::net
