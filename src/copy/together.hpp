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

/// Starts one copy for each element of a list. If one can't be started, those before it are waited
/// for, so that nothing is under way when this throws.
template <class List, class Start>
std::vector<StatePtr> start_each(List const& list, Start const& start) {
  std::vector<StatePtr> states;
  states.reserve(list.size());
  try {
    for (auto const& one : list) states.push_back(start(one));
  } catch (Error const& error) {
    try {
      Together::wait_for(states);
    } catch (Error const&) {
      throw error;  // the one that is told is that which kept the others from being started
    }
    throw;
  }
  return states;
}

}  // namespace meshpost::copying
