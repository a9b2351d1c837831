#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// Threads that share a few microseconds of work with their caller. Such a thread polls for more
/// work for `attentive` after the last, so it begins at once; then it sleeps. Whatever none of them
/// has begun when the caller comes to it the caller does itself: so where they sleep, or have no
/// core, little is lost.
class PromptThreads {
 public:
  /// `purpose`: as start_thread() takes it.
  PromptThreads(std::string purpose, std::chrono::microseconds attentive);
  PromptThreads(PromptThreads const&) = delete;
  PromptThreads& operator=(PromptThreads const&) = delete;
  ~PromptThreads();

  /// Starts threads until there are `count`; fewer where the system has no more to give, and then
  /// it is not asked again.
  void grow(u32 count);
  u32 count() const { return static_cast<u32>(helpers_.size()); }
  /// Calls `work` with 0 to pieces - 1, each once. Thread k - 1 does piece k, if anybody but the
  /// caller does, so what it has set up for itself serves again. Returns when all are done. One
  /// caller at a time; `work` throws nothing.
  void each(u32 pieces, std::function<void(u32)> const& work);

 private:
  // A caller offers a piece; the thread or the caller takes it, by exchange: so one of them does.
  // What the caller wrote before is seen by the thread that takes it (release, acquire); what the
  // piece did, by the caller, who reads `done` that the thread wrote behind it.
  enum class State : u32 { idle, offered, taken, done, closing };
  struct alignas(128) Helper {
    std::atomic<State> state{State::idle};
    std::function<void(u32)> const* work = nullptr;  // of what is offered
    std::thread thread{};
  };
  void serve(Helper& helper, u32 piece) const;
  void await_work(Helper& helper) const;

  std::string const purpose_;
  std::chrono::microseconds const attentive_;
  std::vector<std::unique_ptr<Helper>> helpers_;
  bool refused_ = false;
};

}  // namespace meshpost
