#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/failure.hpp"
#include "pipeline/leg_executor.hpp"

namespace meshpost::pipelining {

/// Progress of a pipeline's legs, which their threads tell each other. Thread-safe.
///
/// A leg's end of chunk c is posted when the leg is over or, for lanes that work ahead, when it is
/// on its stream. The last `kept` ends of each leg are kept. Nobody asks for an older one: by the
/// schedule's dependencies a leg is at most `depth` chunks ahead of the next.
class Board {
 public:
  Board(std::size_t legs, u64 depth, u64 chunks)
      : kept_(kept(depth, chunks)), posted_(legs, 0), ends_(legs * kept_) {}

  /// Number of ends that are kept for each leg, at most one for each chunk.
  static u64 kept(u64 depth, u64 chunks) {
    return std::max<u64>(1, std::min(2 * depth + 4, chunks));
  }

  u64 kept() const { return kept_; }

  void post(u32 leg, u64 chunk, Ticket end) {
    {
      std::scoped_lock const lock(mutex_);
      ends_[place(leg, chunk)] = std::move(end);
      posted_[leg] = chunk + 1;
    }
    changed_.notify_all();
  }
  /// Waits until the end is posted. Nothing if the run fails before.
  std::optional<Ticket> get(u32 leg, u64 chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || posted_[leg] > chunk; });
    if (failed_) return std::nullopt;
    return ends_[place(leg, chunk)];
  }
  /// Keeps the exception that is being handled, if it is the first. All waiting threads continue.
  /// \returns true if it is the first
  bool fail(std::string const& where) noexcept {
    bool const first = failure_.note(where);
    {
      std::scoped_lock const lock(mutex_);
      failed_ = true;
    }
    changed_.notify_all();
    return first;
  }
  /// Takes all ends that are kept, in the order of legs. Call it when all threads have ended.
  std::vector<Ticket> take() { return std::exchange(ends_, {}); }
  void rethrow_if_failed() const { failure_.rethrow_if_any(); }

 private:
  u64 place(u32 leg, u64 chunk) const { return leg * kept_ + chunk % kept_; }

  u64 kept_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<u64> posted_;  // chunks of each leg
  std::vector<Ticket> ends_;
  bool failed_ = false;
  Failure failure_;
};

}  // namespace meshpost::pipelining
