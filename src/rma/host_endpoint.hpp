#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/base/types.hpp"
#include "meshpost/world/layout.hpp"
#include "rma/access.hpp"

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
/// nobody else touches the memory.
class HostEndpoint {
 public:
  HostEndpoint(Layout const& layout, Proxy* const& proxy) : layout_(layout), proxy_(proxy) {}

  /// Raises a counter in the memory of an own device.
  void raise(u32 own, Delivery const& count);
  /// The same on the thread that answers other processes: waits for nobody.
  void raise_for_another(u32 own, Delivery const& count);
  /// From before a run's kernels begin until they have ended, and what they left is taken.
  void run_begins(bool with_host);
  void run_ends(bool with_host, bool well);
  /// What ranks of an own device look into in a run that the host takes part in, without a proxy.
  Mailbox mailbox(u32 own) const { return own_.empty() ? Mailbox{} : own_[own]->mailbox(); }
  /// In such a run, now and then.
  void poll();

 private:
  struct Kept {
    u32 own;
    Delivery count;
  };
  void raise_at_rest(u32 own, Delivery const& count) const;
  void raise_now(u32 own, Delivery const& count);
  std::vector<Kept> take_kept();

  Layout const& layout_;
  Proxy* const& proxy_;
  std::mutex mutex_;                          // of what follows
  std::atomic<u32> runs_ = 0;                 // under way, without the host
  u32 runs_with_host_ = 0;                    // likewise, with it
  std::vector<std::unique_ptr<Access>> own_;  // by device, from the first run with the host on
  std::mutex keeping_;                        // of kept_; below all others
  std::vector<Kept> kept_;
};

}  // namespace meshpost::detail
