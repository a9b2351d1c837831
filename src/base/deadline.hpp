#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "meshpost/base/config.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// Ends when nothing has changed for a given time. A length of 0: never.
///
/// Between two looks at most `longest_gap` counts, so time counts only while the owner could look.
/// A process may have been stopped (SIGSTOP, Ctrl-Z, a debugger, the freezer of a cgroup). Then
/// nobody could make progress in that time. So look more often than `longest_gap`, just after
/// looking at what might have changed. One thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds usual_gap{50};

  explicit Deadline(Milliseconds length, Milliseconds longest_gap = usual_gap)
      : length_(length), longest_gap_(longest_gap) {}

  /// Notes a change. Looks.
  void renew(Clock::time_point now = Clock::now()) {
    waited_ = {};
    looked_ = now;
  }
  /// Looks, but the time since the last look does not count.
  void skip(Clock::time_point now = Clock::now()) { looked_ = now; }
  /// Looks. True if it has ended.
  bool ends(Clock::time_point now = Clock::now()) {
    waited_ += std::clamp<Clock::duration>(now - std::exchange(looked_, now), {}, longest_gap_);
    return length_.count() != 0 && waited_ > length_;
  }
  /// The same; `progress` is another number whenever something has changed.
  bool ends(u64 progress, Clock::time_point now = Clock::now()) {
    if (std::exchange(before_, progress) != progress) renew(now);
    return ends(now);
  }
  /// Time that has counted since the last change.
  Milliseconds waited() const { return std::chrono::duration_cast<Milliseconds>(waited_); }
  Milliseconds length() const { return length_; }
  std::string text() const {
    return fmt::format("{:.3g} s", static_cast<double>(length_.count()) * 1e-3);
  }

 private:
  Milliseconds length_, longest_gap_;
  u64 before_ = 0;
  Clock::duration waited_{};
  Clock::time_point looked_ = Clock::now();
};

/// True if a debugger is attached. Then no deadline ends anything, and this one begins anew. Ask
/// only when the deadline has come: the answer takes the kernel some microseconds.
inline bool watched_by_debugger(Deadline& deadline) {
  if (!debugger_attached()) return false;
  deadline.renew();
  return true;
}

}  // namespace meshpost
