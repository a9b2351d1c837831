#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "rma/runs/launching/record.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// \throws Error(misuse) if a host call is not allowed here
void guard(std::string_view operation, std::string_view of = {});

/// A World's runs, in the order in which they were launched, and the thread that supervises those
/// that nobody waits for (queue.cpp). Its mutex is the World's: while it is held, nothing changes
/// under a run.
class RunQueue {
 public:
  RunQueue(WorldState& world, ProcessGroup const& group) : world_(world), group_(group) {}
  RunQueue(RunQueue const&) = delete;
  RunQueue& operator=(RunQueue const&) = delete;

  void begin_thread();
  void end_thread();
  /// Behind end_thread(): nobody drives a run any more, or uses the World.
  void await_unpinned();

  std::shared_ptr<RunRecord> enqueue(std::shared_ptr<RunRecord> const& record, bool awaited);
  /// For the thread that drives a run: begins it, if no wait is needed. Errors stay in the record.
  bool begin_at_once(std::shared_ptr<RunRecord> const& record);
  /// The first run is over. Returns the next one, if there is one: it has its turn now, and the
  /// caller begins it.
  std::shared_ptr<RunRecord> leave();
  /// Drives runs, or waits for the threads that do, until `record` is done.
  void help(std::shared_ptr<RunRecord> const& record);
  /// From here on any thread may drive it.
  void let_go(RunRecord& record);
  /// While pinned, a World does not end. For a caller that holds the mutex of a record with this
  /// World.
  void pin() { ++pins_; }
  void unpin();
  void wake_supervisor(bool urgent);

  /// The mutex, once all runs launched so far are over.
  std::unique_lock<std::mutex> idle();
  /// The same, but at once if the host takes part in all of them.
  std::unique_lock<std::mutex> turn();
  std::unique_lock<std::mutex> now() { return std::unique_lock(mutex_); }
  /// Later work of the stream begins behind the runs launched so far, unless the host takes part in
  /// all of them. On a GPU, if the host has work for these runs, it waits for them itself.
  void let_wait_for_runs(Stream& stream);
  /// True if no run can be seen without waiting.
  bool seems_idle();

  /// A run has failed: those that were begun behind it end, with an error that says why. Then
  /// cleans up, while no run is begun.
  void end_queued(RunRecord const& failed, Error const& error,
                  std::function<void(u32 last_run)> const& clean_up);
  /// Stores the error of a run that failed, for hosts that wait for its ranks.
  void has_failed(Error const& error);
  /// The last failure, if there were more than `before`: after it, nobody notifies this host before
  /// another launch.
  std::optional<Error> failure_behind(u64 before) const;
  u64 failures_before_last_launch() const;
  u64 failures() const;

  /// The same number in all processes. The next `count` runs have begun.
  u32 next_runs(u32 count = 1);
  void go_on_behind(u32 run);  ///< the next run comes behind it
  u32 runs() const { return runs_; }

 private:
  void supervise();  // the thread
  void help(std::unique_lock<std::mutex>& lock, std::function<bool()> const& enough);
  bool begin(std::shared_ptr<RunRecord> const& record, bool behind);
  void let_streams_wait(std::vector<Stream*> const& streams,
                        std::shared_ptr<RunRecord> const& record);

  WorldState& world_;
  ProcessGroup const& group_;
  std::atomic<u32> runs_ = 0;
  mutable std::mutex failures_mutex_;
  u64 failures_ = 0, failures_at_launch_ = 0;  // runs; guarded by failures_mutex_, as the next
  std::optional<Error> last_failure_;
  std::mutex launching_;  // held while a run is begun at once; before mutex_
  std::mutex mutex_;      // of the World's parts, and of the queue
  std::condition_variable changed_, supervisor_wakes_;
  std::deque<std::shared_ptr<RunRecord>> queue_;  // the first one is running, or is about to
  bool closing_ = false, urgent_ = false;
  std::atomic<u32> pins_ = 0, helpers_ = 0;
  std::atomic<bool> supervisor_sleeps_ = false;
  std::thread supervisor_;
};

}  // namespace meshpost::detail
