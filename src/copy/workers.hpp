#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::copying {

/// Threads that process tasks. They are started when they are needed, up to a given number. Lives
/// as long as the process. Thread-safe.
class Workers {
 public:
  explicit Workers(u32 most) : most_(most) {}
  /// `task` must not throw. If the system gives no further thread, the existing ones do it. \throws
  /// Error(out_of_memory) if there are none; `task` is then never done
  void run(std::function<void()> task);

 private:
  void serve();
  u32 const most_;
  u32 threads_ = 0, idle_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
};

/// For tasks that end by themselves. They wait for devices and for host threads that copy, but
/// never for another task or for the user's work.
Workers& movers();
/// For tasks that wait for movers. They never wait for each other or for the user's work.
Workers& conductors();

}  // namespace meshpost::copying
