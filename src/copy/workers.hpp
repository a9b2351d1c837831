#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "meshpost/base/fn.hpp"

namespace meshpost::copying {

/// Threads that work off tasks, started as they are needed, up to a number. Lives as long as the
/// process. Thread-safe.
class Workers {
 public:
  explicit Workers(u32 most) : most_(most) {}
  /// `task` must not throw. Where the system gives no further thread, those that there are do it.
  /// \throws Error(out_of_memory) if there are none; `task` is never done then
  void run(std::function<void()> task);

 private:
  void serve();
  u32 const most_;
  u32 threads_ = 0, idle_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
};

/// For tasks that end by themselves: they wait for devices and for host threads that copy, never
/// for another task nor for what is the user's.
Workers& movers();
/// For tasks that wait for movers, never for each other nor for what is the user's.
Workers& conductors();

}  // namespace meshpost::copying
