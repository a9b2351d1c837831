#include "copy/together.hpp"

#include <atomic>
#include <exception>

namespace meshpost::copying {

std::shared_ptr<Event> Together::event() {
  std::scoped_lock const lock(mutex_);
  if (!waiter_) {
    auto waiter = std::make_shared<HostState>();
    conductors().run([waiter, parts = parts_] { waiter->run([&] { wait_for(parts); }); });
    waiter_ = std::move(waiter);  // set last: from here on the event will be completed
  }
  return waiter_->event();
}

void Together::wait_for(std::vector<StatePtr> const& parts) {
  std::exception_ptr first;
  for (auto const& part : parts) try {
      part->wait();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

void wait_quietly(std::vector<StatePtr> const& parts) noexcept {
  for (auto const& part : parts) try {
      part->wait();
    } catch (...) {
      continue;
    }
}

StatePtr gather(std::vector<StatePtr> parts) {
  struct Gathered {
    explicit Gathered(std::vector<StatePtr>&& all) : parts(std::move(all)) {}
    std::vector<StatePtr> parts;
    std::atomic<u64> left = parts.size() + 1;
    HostState state{};

    // The last one's acquire sees the others' earlier stores.
    void leave() {
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1)
        state.run([this] { Together::wait_for(parts); });  // all are done
    }
  };
  std::shared_ptr<Gathered> all;
  try {
    all = std::make_shared<Gathered>(std::move(parts));
    for (auto const& part : all->parts) part->event()->then([all] { all->leave(); });
  } catch (...) {
    wait_quietly(all ? all->parts : parts);
    throw;
  }
  all->leave();
  return {all, &all->state};
}

void when_done(StatePtr const& copy, std::function<void()> const& action) {
  try {
    copy->event()->then(action);
  } catch (...) {
    wait_quietly({copy});
    throw;
  }
}

void follow(std::shared_ptr<HostState> const& state, std::function<StatePtr()> const& begin) {
  try {
    auto const begun = begin();
    when_done(begun, [state, begun] { state->run([&] { begun->wait(); }); });
  } catch (...) {
    state->run([] { throw; });
  }
}

}  // namespace meshpost::copying
