#include "copy/state.hpp"

#include "meshpost/base/events.hpp"

namespace meshpost {
namespace copying {

void HostState::run(std::function<void()> const& work) {
  try {
    work();
  } catch (Error const& error) {
    error_ = error;
  } catch (std::exception const& error) {
    error_ = Error(Kind::device_failed, "copy", error.what(), "see the text of the cause");
  }
  event_->signal();
}

void HostState::wait() {
  event_->wait();
  if (error_) throw Error(*error_);
}

StatePtr finished() {
  static auto const one = [] {
    auto state = std::make_shared<HostState>();
    state->run([] {});
    return state;
  }();
  return one;
}

}  // namespace copying

Copy::Copy(std::shared_ptr<State> state) : state_(std::move(state)) {}

Copy::~Copy() {
  if (!state_) return;  // moved from
  try {
    state_->wait();
  } catch (std::exception const& error) {
    event_sink()->warning(std::string("a copy that nobody waited for failed: ") + error.what());
  }
}

void Copy::wait() { state_->wait(); }
bool Copy::done() const { return state_->done(); }
std::shared_ptr<Event> Copy::event() const { return state_->event(); }

}  // namespace meshpost
