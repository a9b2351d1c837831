// The thread of LibMP's engine: it carries requests on, and looks for what ends them.
#include "base/caught.hpp"
#include "base/pauses.hpp"
#include "compat/mp/engine.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost::compat::mp {

void Engine::look_at_stream_waits() {
  for (auto& wait : stream_waits_) {
    if (static_cast<i32>(memory::load_acquire(wait.begun) - wait.number) < 0) {
      wait.deadline.renew();
      continue;
    }
    auto const& request = *requests_.at(wait.request);
    if (!wait.deadline.ends(progress_of(request)) || watched_by_debugger(wait.deadline)) continue;
    return fail(late("wait of a stream", request, wait.deadline));  // empties the list
  }
}

// A GPU that has failed comes to none of the requests in its streams.
void Engine::look_at_device() {
  try {
    u32 word = 0;
    words_.device().read(&word, on_device_.data(), Bytes{sizeof word});
  } catch (...) {
    fail(caught("look at the GPU"));
  }
}

void Engine::look_for_losses() {
  if (!options_.lost) return;
  // Any peer may be the one that stores a word.
  bool const any = !watches_.empty() || word_waits_ != 0;
  for (auto const& [process, peer] : at_) {
    bool const needed = any || !peer.outgoing.empty() || !peer.in_flight.empty() ||
                        !peer.receives.empty() || peer.gets != 0;
    if (!needed) continue;
    if (auto lost = options_.lost(process)) return fail(std::move(*lost));
  }
}

void Engine::run() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds each{10};
  Pauses pauses;
  for (auto last = Clock::now(); !ends_; pauses.rest()) {
    if (progress()) pauses.renew();
    if (Clock::now() - last < each) continue;
    last = Clock::now();
    Lock const lock(mutex_);
    if (failure_) {
      // The program may ask its streams alone, which know no errors.
      if (!told_) warn(failure_->what());
      told_ = true;
      continue;
    }
    look_at_stream_waits();
    look_at_device();
    look_for_losses();
  }
}

}  // namespace meshpost::compat::mp
