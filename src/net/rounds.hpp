#pragma once
#include <atomic>
#include <mutex>

#include "base/deadline.hpp"
#include "base/fork.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost::net {

/// Notes that a thread is in an engine, one thread at a time: such a call is a round. A supervisor,
/// another thread, may find that the thread does not come back. Then it takes the round, and with
/// it the objects that the thread uses.
///
/// end() and taking are read-modify-writes of one word, so exactly one of them comes first. If
/// end() does, the thread has left, and keeps its objects. If the round is taken first, end() says
/// so. The supervisor then sees all that the thread did before begin(), and alone uses the objects
/// from then on.
class Rounds {
 public:
  explicit Rounds(std::chrono::milliseconds limit = longest) : lasts_(limit, longest_pause) {}

  /// By the thread. A round is under way: the count is odd.
  void begin() {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  /// True if the thread may go on. False: this round was taken away meanwhile.
  bool end() {
    u64 now = count_.load(std::memory_order_relaxed) & ~mark;
    return count_.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
  }

  /// Takes a round that has lasted for the limit. To be called again and again. Between two calls
  /// at most `longest_pause` counts, because this process may have been stopped. Any supervisor;
  /// there may be several. \returns taken()
  bool take_if_long();
  bool taken() const { return taken_.load(std::memory_order_acquire); }  ///< likewise

  /// The usual limit. Rounds take microseconds, or as long as a crowded host keeps a thread from
  /// its core.
  static constexpr std::chrono::milliseconds longest{500};
  static constexpr auto longest_pause = Deadline::usual_gap;

 private:
  static constexpr u64 mark = u64{1} << 63;

  std::atomic<u64> count_{0};
  std::mutex mutex_;  // of the supervisors: guards seen_ and lasts_
  u64 seen_ = 0;      // a count, and how long it has been that
  Deadline lasts_;
  std::atomic<bool> taken_{false};  // only ever set
};

using meshpost::keep_for_ever;  ///< for what a thread that hangs may still touch

}  // namespace meshpost::net
