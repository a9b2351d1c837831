#pragma once
#include <algorithm>
#include <mutex>
#include <vector>

#include "copy/state.hpp"
#include "copy/workers.hpp"

namespace meshpost::copying {

/// Copies in progress together. Its event is seldom needed: a thread of conductors() waits for the
/// copies and completes it.
class Together : public Copy::State {
 public:
  /// Holds the copies that `start` returns. If it throws, or there is no memory, nothing is in
  /// progress.
  template <class Start>
  static std::shared_ptr<Together> of(Start const& start) {
    auto one = std::make_shared<Together>();  // before anything is in progress
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

/// Waits for all, in a handler. It throws nothing: the error that is handled is the one to report.
void wait_quietly(std::vector<StatePtr> const& parts) noexcept;

/// Starts one copy for each element of a list. If one can't be started, it waits for those before
/// it, so that nothing is in progress when this throws.
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

// -- Copies that wait for another process. The other process may be stopped for a long time. So no
// thread waits for these copies: unrelated copies would lack that thread.

/// Joins copies whose events are the host's to one whose event is, too.
StatePtr gather(std::vector<StatePtr> parts);

/// `begin` begins a copy whose event is the host's. `state` ends when that copy does. Returns when
/// the copy has begun. An exception of `begin` becomes the state's error.
void follow(std::shared_ptr<HostState> const& state, std::function<StatePtr()> const& begin);

/// Calls `action` when a copy whose event is the host's is done. If it throws, the copy is done.
void when_done(StatePtr const& copy, std::function<void()> const& action);

}  // namespace meshpost::copying
