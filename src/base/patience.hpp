#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "meshpost/base/config.hpp"
#include "meshpost/base/types.hpp"

namespace meshpost {

/// The variable with the deadline for other processes. A cause that this deadline has made names
/// it.
inline constexpr char const* peer_deadline = "MESHPOST_PEER_DEADLINE";

/// What to do about a loss: `remedy`, and if that deadline was the cause, perhaps to raise it.
inline std::string remedy_of_loss(std::string_view cause, std::string_view remedy) {
  if (cause.find(peer_deadline) == std::string_view::npos) return std::string(remedy);
  return fmt::format("raise {} (seconds) if a process or the network was only slow; else {}",
                     peer_deadline, remedy);
}

/// Ends when nothing has changed for long; a length of 0: never.
///
/// Time counts as far as its owner was there to look: between two looks no more than `longest_gap`
/// of it. A process that was stopped (SIGSTOP, Ctrl-Z, a debugger, the freezer of a cgroup) finds
/// the same minutes gone everywhere, in which nobody could have got on. So look at it more often
/// than that, and at what might have changed just before. One thread.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds usual_gap{50};

  explicit Patience(Milliseconds length, Milliseconds longest_gap = usual_gap)
      : length_(length), longest_gap_(longest_gap) {}

  /// Something has changed. Looks.
  void renew(Clock::time_point now = Clock::now()) {
    waited_ = {};
    looked_ = now;
  }
  /// Looks; the time since the last look does not count.
  void skip(Clock::time_point now = Clock::now()) { looked_ = now; }
  /// Looks; whether it has ended.
  bool ends(Clock::time_point now = Clock::now()) {
    waited_ += std::clamp<Clock::duration>(now - std::exchange(looked_, now), {}, longest_gap_);
    return length_.count() != 0 && waited_ > length_;
  }
  /// The same, where `progress` is another number whenever something has changed.
  bool ends(u64 progress, Clock::time_point now = Clock::now()) {
    if (std::exchange(before_, progress) != progress) renew(now);
    return ends(now);
  }
  std::string text() const {
    return fmt::format("{:.3g} s", static_cast<double>(length_.count()) * 1e-3);
  }

 private:
  Milliseconds length_, longest_gap_;
  u64 before_ = 0;
  Clock::duration waited_{};
  Clock::time_point looked_ = Clock::now();
};

/// Whether a debugger is attached, under which no deadline ends anything: this one begins anew. To
/// be asked when it has come, for the answer takes the kernel some microseconds.
inline bool watched_by_debugger(Patience& deadline) {
  if (!debugger_attached()) return false;
  deadline.renew();
  return true;
}

}  // namespace meshpost
