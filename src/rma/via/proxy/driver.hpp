#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "meshpost/base/error.hpp"
#include "net/channel.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// Does the proxy's work in rounds, by one thread at a time. The driver's own thread lives as long
/// as the World, and sleeps while no run is in progress. Workers of CPU devices help (help()). Then
/// the thread pauses, and checks if they still help: after 50 us, then half as often each time, up
/// to 1 ms. If a rank computes instead, the thread takes over after at most the time for which the
/// workers had helped before.
///
/// A thread that supervises runs never enters the engine. It waits for a thread inside the engine
/// no longer than see_that_nobody_hangs() does.
class Driver {
 public:
  struct Work {
    std::function<bool()> get_on;  ///< a round; true if anything has happened
    std::function<bool()> nothing_left;
  };
  Driver(ProcessGroup const& group, Work work) : group_(group), work_(std::move(work)) {}
  Driver(Driver const&) = delete;
  Driver& operator=(Driver const&) = delete;

  /// Before the first round. `channel`: null if rounds enter none. `shares_cores`: with ranks.
  void know(net::Channel* channel, bool shares_cores) {
    channel_ = channel, shares_cores_ = shares_cores;
  }
  void begin_thread();
  void end_thread();

  /// Allows rounds from now on.
  void start();
  /// Allows no more rounds. False: a thread hangs in one, or none was allowed.
  bool stop();
  bool awake() const { return awake_.load(); }
  /// Does a round, for a thread that has nothing else to do. True if anything came of it. Does
  /// nothing if another thread is in a round.
  bool help() { return drive(true); }
  /// Instead of a round by the supervisor itself. After the last helper, the thread pauses at most
  /// once before it does all rounds itself.
  void wake();
  /// Excludes all threads that drive. \throws Error(peer_lost) if a thread hangs()
  std::unique_lock<std::mutex> alone();

  /// Notes that there is work.
  void begin_work();
  bool idle() const { return idle_.load(); }
  u64 activity() const { return activity_.load(); }
  void has_moved() { moved_.fetch_add(1, std::memory_order_relaxed); }
  /// Changes whenever a round makes progress.
  u64 moved() const {
    return moved_.load(std::memory_order_relaxed) + activity_.load(std::memory_order_relaxed);
  }

  void fail(Error error);
  /// The first failure.
  std::optional<Error> failure() const;

  /// True if a thread is still inside the engine after a process was lost. That thread, and
  /// everything it may touch, are then left alone for ever (driver.cpp).
  /// Called by: the thread that supervises runs, as the next.
  bool hangs();
  /// \throws Error(peer_lost) naming that process
  void see_that_nobody_hangs();

 private:
  void work();
  bool await_run();
  void attend_run();
  void sleep(std::chrono::microseconds length);
  bool drive(bool helping);

  ProcessGroup const& group_;
  Work const work_;
  net::Channel* channel_ = nullptr;  // hangs() supervises it
  bool shares_cores_ = false;
  std::mutex driving_;         // its holder does what the thread does
  std::atomic<u64> helps_{0};  // rounds by other threads
  std::thread thread_;
  std::mutex sleeping_;
  std::condition_variable wakes_;
  bool woken_ = false;
  std::atomic<bool> awake_{false};   // false: nobody drives; cleared under driving_
  std::atomic<bool> ending_{false};  // ends the thread; under sleeping_
  std::atomic<bool> idle_{true};
  std::atomic<u64> activity_{0}, moved_{0};
  mutable std::mutex mutex_;  // of failure_
  std::optional<Error> failure_;
};

}  // namespace meshpost::detail
