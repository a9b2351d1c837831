#pragma once
#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace meshpost::launch {

using Clock = std::chrono::steady_clock;

/// One round of waiting: add the descriptors, then wait once.
class Poller {
 public:
  void watch(int fd, short events, std::function<void()> then);
  /// Calls `then` of all that are ready, in the order in which they were added, and forgets all.
  /// Returns at `until` without a call if none is ready.
  void wait(std::optional<Clock::time_point> until);

 private:
  std::vector<pollfd> all_;
  std::vector<std::function<void()>> calls_;
};

}  // namespace meshpost::launch
