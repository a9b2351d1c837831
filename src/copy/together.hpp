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
  /// Of those that `start` returns. If it throws, or there is no memory, nothing is under way.
  template <class Start>
  static std::shared_ptr<Together> of(Start const& start) {
    auto one = std::make_shared<Together>();  // before anything is under way
    one->parts_ = start();
    return one;
  }
  void wait() override { wait_for(parts_); }
  bool done() override {
    return std::ranges::all_of(parts_, [](auto const& part) { return part->done(); });
  }
  std::shared_ptr<Event> event() override;
  /// Waits for all, even if one fails; then throws the first error.
  static void wait_for(std::vector<StatePtr> const& parts);

 private:
  std::vector<StatePtr> parts_;
  std::mutex mutex_;
  std::shared_ptr<HostState> waiter_;
};

/// Waits for all, in a handler: the error that is handled is the one to tell.
void wait_quietly(std::vector<StatePtr> const& parts) noexcept;

/// Starts one copy for each element of a list. If one can't be started, those before it are waited
/// for, so that nothing is under way when this throws.
template <class List, class Start>
std::vector<StatePtr> start_each(List const& list, Start const& start) {
  std::vector<StatePtr> states;
  states.reserve(list.size());
  try {
    for (auto const& one : list) states.push_back(start(one));
  } catch (...) {
    wait_quietly(states);
    throw;
  }
  return states;
}

// -- Copies that wait for another process. That may be stopped for a long time, so no thread waits
// for them: it would be missing for copies that have nothing to do with it.

/// Copies whose events are the host's, as one whose event is, too.
StatePtr gather(std::vector<StatePtr> parts);

/// `state` ends as the copy does that `begin` begins, whose event is the host's. Returns when that
/// is begun; what it throws is the state's error.
void follow(std::shared_ptr<HostState> const& state, std::function<StatePtr()> const& begin);

/// Calls `action` when a copy whose event is the host's is done. If it throws, the copy is done.
void when_done(StatePtr const& copy, std::function<void()> const& action);

}  // namespace meshpost::copying
