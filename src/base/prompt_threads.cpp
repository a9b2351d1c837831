#include "base/prompt_threads.hpp"

#include <algorithm>
#include <utility>

#include "base/pause.hpp"
#include "base/thread.hpp"

namespace meshpost {

PromptThreads::PromptThreads(std::string purpose, std::chrono::microseconds attentive)
    : purpose_(std::move(purpose)), attentive_(attentive) {}

PromptThreads::~PromptThreads() {
  for (auto& helper : helpers_) {
    helper->state.store(State::closing);  // sequentially consistent: the wake-up can't be lost
    helper->state.notify_one();
    helper->thread.join();
  }
}

void PromptThreads::grow(u32 count) try {
  if (refused_ || count <= this->count()) return;
  helpers_.reserve(count);
  while (helpers_.size() < count) {
    auto helper = std::make_unique<Helper>();
    auto const piece = static_cast<u32>(helpers_.size()) + 1;
    helper->thread =
        start_thread(purpose_, [this, of = helper.get(), piece] { serve(*of, piece); });
    helpers_.push_back(std::move(helper));
  }
} catch (...) {
  refused_ = true;  // no thread, or no memory for it: the caller does the work
}

// Polls for a while, then sleeps. It looks again before it sleeps and when it wakes: a piece may
// have been taken back.
void PromptThreads::await_work(Helper& helper) const {
  using Clock = std::chrono::steady_clock;
  auto const end = Clock::now() + attentive_;
  auto const nothing = [](State state) { return state == State::idle || state == State::done; };
  for (;;) {
    for (int looks = 0; looks < 64; ++looks) {
      if (!nothing(helper.state.load(std::memory_order_relaxed))) return;
      pause_processor();
    }
    if (Clock::now() < end) continue;
    auto const state = helper.state.load(std::memory_order_relaxed);
    if (!nothing(state)) return;
    helper.state.wait(state);
  }
}

void PromptThreads::serve(Helper& helper, u32 piece) const {
  for (;;) {
    await_work(helper);
    auto state = State::offered;
    if (helper.state.compare_exchange_strong(state, State::taken, std::memory_order_acquire)) {
      (*helper.work)(piece);
      helper.state.store(State::done, std::memory_order_release);
    } else if (state == State::closing) {
      return;
    }
  }
}

void PromptThreads::each(u32 pieces, std::function<void(u32)> const& work) {
  if (pieces == 0) return;
  auto const shared = std::min<u32>(pieces - 1, count());
  for (u32 i = 0; i < shared; ++i) {
    helpers_[i]->work = &work;
    helpers_[i]->state.store(State::offered, std::memory_order_release);
    // No system call unless the thread sleeps. If a wake-up is lost, only the thread's help is.
    helpers_[i]->state.notify_one();
  }
  work(0);
  for (u32 i = 0; i < shared; ++i) {
    auto& state = helpers_[i]->state;
    auto offered = State::offered;
    if (state.compare_exchange_strong(offered, State::idle, std::memory_order_relaxed)) {
      work(i + 1);
      continue;
    }
    for (u32 looks = 0; state.load(std::memory_order_acquire) != State::done; ++looks) {
      if (looks < 1000) pause_processor();
      else std::this_thread::yield();  // it may need this core
    }
    state.store(State::idle, std::memory_order_relaxed);
  }
  for (u32 piece = shared + 1; piece < pieces; ++piece) work(piece);
}

}  // namespace meshpost
