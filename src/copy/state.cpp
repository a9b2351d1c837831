#include "copy/state.hpp"

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost {
namespace copying {

void HostState::run(std::function<void()> const& work) {
  try {
    work();
  } catch (...) {
    error_ = caught("copy");
  }
  event_->signal();
}

void HostState::wait() {
  event_->wait();
  if (error_) throw Error(*error_);
}

StatePtr finished() {
  static auto const* const one = [] {  // copies may be made after main
    auto state = std::make_shared<HostState>();
    state->run([] {});
    return new StatePtr(state);
  }();
  return *one;
}

void check_caller(char const* operation) {
  refuse_after_fork(operation);
  if (inside_kernel())
    throw Error(Kind::misuse, operation, "it was called from inside a kernel",
                "copy on the host, before or after the run; kernels use put and get");
}

}  // namespace copying

Copy::Copy(std::shared_ptr<State> state) : state_(std::move(state)) {}

Copy::~Copy() {
  if (!state_ || leave_to_parent(state_)) return;  // moved from; or its threads are the parent's
  if (heard_.load(std::memory_order_relaxed)) return;
  try {
    state_->wait();
  } catch (std::exception const& error) {
    warn(std::string("a copy that nobody waited for failed: ") + error.what());
  }
}

Copy::State& Copy::state(char const* operation) const {
  copying::check_caller(operation);
  if (!state_)
    throw Error(Kind::misuse, operation, "this Copy was moved from",
                "use the Copy that it was moved to");
  return *state_;
}

// Relaxed is enough, because only the flag itself is read by it. Several threads may wait.
void Copy::wait() {
  auto& asked = state("wait for a copy");
  try {
    asked.wait();
  } catch (...) {
    heard_.store(true, std::memory_order_relaxed);
    throw;
  }
  heard_.store(true, std::memory_order_relaxed);
}
bool Copy::done() const { return state("ask whether a copy is done").done(); }
std::shared_ptr<Event> Copy::event() const { return state("ask for a copy's event").event(); }

}  // namespace meshpost
