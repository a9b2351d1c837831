#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/rma/window.hpp"
#include "rma/world_memory.hpp"

namespace meshpost::detail {

/// What a host keeps of the counters of endpoints that are not ranks, in one window: its own, and
/// those of its devices' streams.
struct HostCounters {
  explicit HostCounters(WindowInfo const& window)
      : info(window), consumed(window.tags), raised(window.tags) {}
  WindowInfo const info;
  std::mutex mutex;           // of all other members
  std::vector<u32> consumed;  // of this host's own, by tag; the words of devices only count up
  std::vector<u32> raised;    // of these, by hosts
  /// Values of WindowInfo::raised_by_host, by own device, stream and tag; made when one is needed.
  std::vector<u32> of_streams{};
  bool freed = false;
};

/// Hosts raise counters of streams and of hosts. At any time: these counters are not swept at the
/// end of a run. Any thread, also the one that answers other processes.
class EndpointCounters : WorldMemory {
 public:
  explicit EndpointCounters(WorldMemory const& memory) : WorldMemory(memory) {}

  void know(std::shared_ptr<HostCounters> const& window);
  void forget(u32 window);
  /// Raises a counter in the memory of an own device. False: there is no such window or tag.
  bool raise(u32 window, StreamId stream, Tag tag);
  /// Raises this host's own counter. False: likewise.
  bool raise(u32 window, Tag tag);

 private:
  std::shared_ptr<HostCounters> find(u32 window);

  std::mutex mutex_;
  std::map<u32, std::shared_ptr<HostCounters>> windows_;
};

}  // namespace meshpost::detail
