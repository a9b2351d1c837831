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

/// A host's own counters in one window. They only count up, so what was consumed is kept here.
struct HostCounters {
  explicit HostCounters(u32 tags) : consumed(tags) {}
  std::mutex mutex;           // of all
  std::vector<u32> consumed;  // by tag
  bool freed = false;
};

/// What hosts raise at ranks of own devices, this process's host and others': any thread.
///
/// While a run is under way that the host takes part in (Launch::with_host), a count goes to ranks
/// as the proxy's do: added where the host can add, else by letter. While another run is under way
/// it is kept until that is over: nobody may add to a GPU's counter but its ranks. Between runs
/// nobody else touches the memory. What other processes ask for is kept until the next run begins,
/// for the thread that answers waits for nobody.
class HostEndpoint {
 public:
  /// `proxy`: null where all ranks are in reach.
  HostEndpoint(Layout const& layout, Proxy* proxy) : layout_(layout), proxy_(proxy) {}

  /// Raises a counter in the memory of an own device; `settled`: which nobody will clear before the
  /// next run.
  void raise(u32 own, via::Signal const& count, bool settled);
  /// The same on the thread that answers other processes: waits for nobody. `behind`: the asker
  /// will take part in the run that is under way here, but has not begun it.
  void raise_for_another(u32 own, via::Signal const& count, bool behind);
  /// Counters that are no more.
  void forget(u32 const* begin, u32 const* end);
  /// From before a run's kernels begin until they have ended, and what they left is taken.
  /// `disturbed`: other processes' ranks may have begun. Whether ranks have letters from here.
  bool run_begins(bool with_host, bool disturbed);
  void run_ends(bool letters, bool well);
  /// What ranks of an own device look into in a run with letters, where there is no proxy.
  Mailbox mailbox(u32 own) const { return own_.empty() ? Mailbox{} : own_[own]->mailbox(); }
  /// In such a run, now and then.
  void poll();

 private:
  struct Kept {
    u32 own;
    via::Signal count;
  };
  void raise_at_rest(u32 own, via::Signal const& count) const;
  void raise_now(u32 own, via::Signal const& count);
  void begin_letters();
  void keep(u32 own, via::Signal const& count);
  template <class Deliver>
  void deliver_kept(Deliver&& deliver);

  Layout const& layout_;
  Proxy* const proxy_;
  std::mutex mutex_;                          // of what follows
  std::atomic<u32> runs_ = 0;                 // under way, without the host
  u32 runs_with_letters_ = 0;                 // likewise, with it, or with what it has kept
  std::vector<std::unique_ptr<Access>> own_;  // by device, from the first run with the host on
  std::mutex keeping_;                        // of kept_, and of what comes to runs_
  std::vector<Kept> kept_;
  mutable std::mutex adding_;  // held while counters at rest are raised
};

}  // namespace meshpost::detail
