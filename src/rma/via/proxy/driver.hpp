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

/// Who does the proxy's work, one at a time, in rounds. Its thread lives as long as the World, and
/// sleeps while no run is under way. Workers of CPU devices help (help()); then the thread steps
/// back, and looks whether they still do: after 50 us, then half as often each time, up to 1 ms. So
/// where a rank computes instead, the thread takes over after no longer than the workers had helped
/// before.
///
/// Who supervises runs never enters the engine, and waits for nobody who is in it for longer than
/// see_that_nobody_hangs() does.
class Driver {
 public:
  struct Work {
    std::function<bool()> get_on;  ///< a round; whether anything has happened
    std::function<bool()> nothing_left;
  };
  Driver(ProcessGroup const& group, Work work) : group_(group), work_(std::move(work)) {}
  Driver(Driver const&) = delete;
  Driver& operator=(Driver const&) = delete;

  /// Before the first round. `channel`: null where rounds enter none. `shares_cores`: with ranks.
  void know(net::Channel* channel, bool shares_cores) {
    channel_ = channel, shares_cores_ = shares_cores;
  }
  void begin_thread();
  void end_thread();

  /// From here on rounds are done.
  void start();
  /// From here on none is; false: a thread hangs in one, or none was.
  bool stop();
  bool awake() const { return awake_.load(); }
  /// A round by whoever has nothing else to do. Whether anything came of it. Nothing is done where
  /// somebody else is at it.
  bool help() { return drive(true); }
  /// Instead of a round of the supervisor's own. After the last who helped, the thread rests no
  /// more than once before it does all itself.
  void wake();
  /// Excludes all who drive. \throws Error(peer_lost) if somebody hangs()
  std::unique_lock<std::mutex> alone();

  /// There is something to do.
  void begin_work();
  bool idle() const { return idle_.load(); }
  u64 activity() const { return activity_.load(); }
  void has_moved() { moved_.fetch_add(1, std::memory_order_relaxed); }
  /// Changes whenever a round gets on.
  u64 moved() const {
    return moved_.load(std::memory_order_relaxed) + activity_.load(std::memory_order_relaxed);
  }

  void fail(Error error);
  /// What has gone wrong first.
  std::optional<Error> failure() const;

  /// True if a thread is still inside the engine after a process was lost. Then that thread, and
  /// whatever it may touch, are left alone for ever (driver.cpp).
  /// Called by: who supervises runs, as the next.
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
  std::mutex driving_;         // whoever holds it does what the thread does
  std::atomic<u64> helps_{0};  // rounds of others than the thread
  std::thread thread_;
  std::mutex sleeping_;
  std::condition_variable wakes_;
  bool woken_ = false;
  std::atomic<bool> awake_{false};   // else nobody drives; cleared under driving_
  std::atomic<bool> ending_{false};  // the thread; under sleeping_
  std::atomic<bool> idle_{true};
  std::atomic<u64> activity_{0}, moved_{0};
  mutable std::mutex mutex_;  // of failure_
  std::optional<Error> failure_;
};

}  // namespace meshpost::detail
