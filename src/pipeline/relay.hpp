#pragma once
#include <atomic>
#include <string>
#include <thread>

#include "meshpost/copy/job_memory.hpp"
#include "pipeline/board.hpp"
#include "pipeline/distribution.hpp"
#include "world/process_group.hpp"

namespace meshpost::pipelining {

/// A process's message about a run to others, with COACCEL's message identifier: stage, level,
/// chunk and direction. A plain value.
struct Notice {
  u64 run = 0;
  Stage stage = Stage::load;
  u32 level = 0;
  bool reverse = false;
  u64 chunk = 0;
  bool failed = false;  ///< the run can't go on; nothing else counts

  std::string pack() const;
  /// \throws Error(bad_argument) for garbage
  static Notice unpack(std::string const& bytes);
};

/// Tells other processes about ends of a pipeline's legs, and tells the board of a run about
/// theirs.
///
/// A process that is told that a leg of a chunk is over sees the leg's bytes. The sender waits for
/// the leg before it tells others, and copies between processes have arrived when they are done.
class Relay {
 public:
  Relay(JobMemory* job, ProcessGroup const& group, Schedule const& schedule,
        Distribution const& distribution)
      : job_(job), group_(group), schedule_(schedule), distribution_(distribution) {}

  ~Relay() { stop(); }
  Relay(Relay const&) = delete;
  Relay& operator=(Relay const&) = delete;

  /// Starts it for a run. `everybody`: all processes hear of every leg, not only those that wait
  /// for it.
  /// \throws Error(out_of_memory) if there is no thread to receive with; sending still works
  void start(Board& board, u64 run, bool everybody);
  /// Stops receiving. True if a received notice failed the run.
  bool stop();

  /// True if other processes want to hear of a leg.
  bool is_awaited(u32 leg) const {
    return !group_.alone() && (everybody_ || !distribution_.listeners(leg).empty());
  }
  /// Tells that a leg is over. If it was on a stream, it has been waited for. Thread-safe.
  void tell(u32 leg, u64 chunk) const;
  /// Tells that the run has failed here. Thread-safe.
  void tell_failure() const;

 private:
  void listen();
  void take(Processes::Message const& message);
  void send(u32 process, Notice const& notice) const {
    group_.processes().post(group_.channel(), process, notice.pack());
  }

  JobMemory* const job_;
  ProcessGroup const& group_;
  Schedule const& schedule_;
  Distribution const& distribution_;
  Board* board_ = nullptr;
  u64 run_ = 0;
  bool everybody_ = false;
  std::atomic<bool> over_{false}, failed_elsewhere_{false};
  std::thread listener_;
};

}  // namespace meshpost::pipelining
