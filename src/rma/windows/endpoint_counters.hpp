#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/rma/window.hpp"
#include "rma/world_memory.hpp"

namespace meshpost::detail {

/// A host's part of the counters of endpoints that are not ranks, in one window: of its own, and of
/// those of its devices' streams.
struct HostCounters {
  explicit HostCounters(WindowInfo const& window)
      : info(window), consumed(window.tags), raised(window.tags) {}
  WindowInfo const info;
  std::mutex mutex;           // of all other members
  std::vector<u32> consumed;  // of this host's own, by tag; the words of devices only count up
  std::vector<u32> raised;    // of these, by hosts
  /// Of own devices' streams, by hosts: by device, stream and tag. In memory that the devices read.
  /// Null: no stream was made yet.
  u32* of_streams = nullptr;
  std::vector<u32> early;  ///< the same until then, or empty
  bool freed = false;
};

/// Hosts raise counters of streams and of hosts. At any time: these counters are not swept at the
/// end of a run. Any thread, also the one that answers other processes: raise() never waits for a
/// device, and nobody holds its locks while he does.
///
/// A stream that waits may hold up all other work on its GPU: kernels if they have no room or share
/// its hardware queue, and small copies. So a host puts its counts into its own memory, and the
/// stream looks there.
class EndpointCounters : WorldMemory {
 public:
  explicit EndpointCounters(WorldMemory const& memory) : WorldMemory(memory) {}

  void know(std::shared_ptr<HostCounters> const& window);
  void forget(u32 window);
  /// Makes the memory for counts of hosts, in all windows now and later: the driver may refuse that
  /// while a stream is captured. \throws Error(out_of_memory)
  void expect_streams();
  /// Raises a counter of an own device's stream. False: there is no such window or tag.
  bool raise(u32 window, StreamId stream, Tag tag);
  /// Raises this host's own counter. False: likewise.
  bool raise(u32 window, Tag tag);
  /// The counts of hosts for an own device's stream, by tag.
  u32* of_stream(HostCounters& window, StreamId stream) const;

 private:
  struct Chunk {
    Allocation memory;
    u64 used = 0;
  };
  std::shared_ptr<HostCounters> find(u32 window);
  u64 words_of(HostCounters const& window) const {
    return u64{layout_.own_count()} * StreamId::most * window.info.tags;
  }
  u64 place_of(HostCounters const& window, StreamId stream) const;
  Device& pinning_device() const;
  void furnish(HostCounters& window);
  u32* take(u64 words);

  std::mutex mutex_;  // of the next; before a window's
  std::map<u32, std::shared_ptr<HostCounters>> windows_;
  bool expects_streams_ = false;
  std::deque<Chunk> chunks_;
  std::multimap<u64, u32*> free_;  // by size in words
};

}  // namespace meshpost::detail
