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

/// Threads that share a few microseconds of work with their caller. After a piece of work a thread
/// polls for `attentive`, so that it begins the next one at once. Then it sleeps. The caller does
/// the pieces that no thread has begun when it comes to them. So little is lost if the threads
/// sleep or have no core.
class PromptThreads {
 public:
  /// `purpose`: as start_thread() takes it.
  PromptThreads(std::string purpose, std::chrono::microseconds attentive);
  PromptThreads(PromptThreads const&) = delete;
  PromptThreads& operator=(PromptThreads const&) = delete;
  ~PromptThreads();

  /// Starts threads until there are `count`. If the system refuses one, there are fewer, and it is
  /// not asked again.
  void grow(u32 count);
  u32 count() const { return static_cast<u32>(helpers_.size()); }
  /// Calls `work` with 0 to pieces - 1, each once. Piece k is done by thread k - 1 or by the
  /// caller, so a thread can reuse what it has set up. Returns when all are done. One caller at a
  /// time; `work` throws nothing.
  void each(u32 pieces, std::function<void(u32)> const& work);

 private:
  // A caller offers a piece. The thread and the caller both take it by exchange, so one of them
  // gets it. The thread that takes it sees what the caller wrote before (release, acquire). The
  // caller sees what the piece did: it reads `done`, which the thread wrote after it.
  enum class State : u32 { idle, offered, taken, done, closing };
  struct alignas(128) Helper {
    std::atomic<State> state{State::idle};
    std::function<void(u32)> const* work = nullptr;  // of the offered piece
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
