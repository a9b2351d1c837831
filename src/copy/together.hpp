#pragma once
#include <algorithm>
#include <mutex>
#include <vector>

#include "copy/state.hpp"
#include "copy/workers.hpp"

namespace meshpost::copying {

/// Copies under way together. Its event, seldom asked for, is a conductor's who waits for them.
class Together : public Copy::State {
 public:
  explicit Together(std::vector<StatePtr> parts) : parts_(std::move(parts)) {}
  void wait() override { wait_for(parts_); }
  bool done() override {
    return std::ranges::all_of(parts_, [](auto const& part) { return part->done(); });
  }
  std::shared_ptr<Event> event() override {
    std::scoped_lock const lock(mutex_);
    if (!waiter_) {
      waiter_ = std::make_shared<HostState>();
      conductors().run(
          [waiter = waiter_, parts = parts_] { waiter->run([&] { wait_for(parts); }); });
    }
    return waiter_->event();
  }
  /// Waits for all, even if one fails; then throws the first error.
  static void wait_for(std::vector<StatePtr> const& parts) {
    std::optional<Error> first;
    for (auto const& part : parts) try {
        part->wait();
      } catch (Error const& error) {
        if (!first) first = error;
      }
    if (first) throw Error(*first);
  }

 private:
  std::vector<StatePtr> parts_;
  std::mutex mutex_;
  std::shared_ptr<HostState> waiter_;
};

}  // namespace meshpost::copying
