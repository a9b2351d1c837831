#pragma once
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "meshpost/device/device.hpp"

namespace meshpost::cpu {

/// An event that a thread of the host completes.
class HostEvent : public Event {
 public:
  bool done() override {
    std::scoped_lock const lock(mutex_);
    return done_;
  }
  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
  }
  void then(std::function<void()> action) override {
    {
      std::scoped_lock const lock(mutex_);
      if (!done_) {
        actions_.push_back(std::move(action));
        return;
      }
    }
    action();
  }
  void signal() {
    std::vector<std::function<void()>> actions;
    {
      std::scoped_lock const lock(mutex_);
      done_ = true;
      actions.swap(actions_);
      changed_.notify_all();
    }
    for (auto const& action : actions) action();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> actions_;
  bool done_ = false;
};

}  // namespace meshpost::cpu
