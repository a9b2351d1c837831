#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/base/types.hpp"
#include "meshpost/world/layout.hpp"
#include "rma/via/access.hpp"

namespace meshpost::detail {

class Proxy;

/// Notifications of hosts to ranks of own devices, from this process's host and from others. From
/// any thread.
///
/// While a run with the host is in progress (Launch::with_host), a count goes to ranks as the
/// proxy's do: the host adds it if it can, else it goes by command. While another run is in
/// progress, the count is kept until that run is over: only a GPU's own ranks may add to its
/// counters. Between runs nobody else touches the memory. Counts of other processes are kept until
/// the next run begins, or the host looks at a run with it: the thread that answers never waits.
class HostEndpoint {
 public:
  /// `proxy`: null if all ranks are in reach.
  HostEndpoint(Layout const& layout, Proxy* proxy) : layout_(layout), proxy_(proxy) {}

  /// Raises a counter in the memory of an own device. `lasting`: nobody will clear it before the
  /// next run.
  void raise(u32 own, via::Signal const& count, bool lasting);
  /// The same on the thread that answers other processes; never waits. `behind`: the sender will
  /// take part in the run in progress here, but has not begun it.
  void raise_for_another(u32 own, via::Signal const& count, bool behind);
  /// Drops the kept counts of counters that no longer exist.
  void forget(u32 const* begin, u32 const* end);
  /// From before a run's kernels begin until they have ended, and their unconsumed notifications
  /// are taken. `disturbed`: other processes' ranks may have begun. True if ranks get commands from
  /// here.
  bool run_begins(bool with_host, bool disturbed);
  void run_ends(bool commands, bool well);
  /// The command queue that ranks of an own device poll in a run with commands, without a proxy.
  CommandQueue command_queue(u32 own) const {
    return own_.empty() ? CommandQueue{} : own_[own]->command_queue();
  }
  /// Called repeatedly during such a run.
  void poll();
  /// Behind the last poll() of a run, before its counters may be cleared.
  void watch_ends();

 private:
  struct Kept {
    u32 own;
    via::Signal count;
  };
  void raise_between_runs(u32 own, via::Signal const& count) const;
  void raise_now(u32 own, via::Signal const& count);
  void begin_commands();
  void keep(u32 own, via::Signal const& count);
  template <class Deliver>
  void deliver_kept(Deliver&& deliver);

  Layout const& layout_;
  Proxy* const proxy_;
  std::mutex mutex_;                          // of the next members
  std::atomic<u32> runs_ = 0;                 // in progress, without the host
  u32 runs_with_commands_ = 0;                // in progress, with the host or its kept counts
  bool watched_ = false;                      // one of these is polled for
  std::vector<std::unique_ptr<Access>> own_;  // by device, from the first run with the host on
  std::mutex keeping_;                        // of kept_, and of increments of runs_
  std::vector<Kept> kept_;
  mutable std::mutex adding_;  // held while counters at rest are raised
};

}  // namespace meshpost::detail
