#pragma once
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/host_calls.hpp"

namespace meshpost::trace {

/// An operation of a stream, a task of the user on it, or a run. Times in ns of the host's clock.
struct StreamSpan {
  std::string name;
  char const* category = "";  ///< "task", "send", "wait", "run"
  u64 begin = 0, end = 0;
  u64 bytes = 0;
};

/// A row of streams or runs.
struct StreamRow {
  std::string device;
  std::string name;
  std::vector<StreamSpan> spans{};
  u64 lost = 0;  ///< operations that had no room
};

/// Calls of the host, operations of a World's streams, and its runs, on the host's clock.
/// Thread-safe.
class HostTimeline : public HostObserver {
 public:
  /// `capacity`: spans to keep for each row.
  explicit HostTimeline(u32 capacity);

  u32 capacity() const { return capacity_; }
  void called(HostCallRecord const& call) override;
  void add_row(StreamRow row);
  /// A run of all devices, as a whole.
  void add_run(std::string const& kernel, u64 begin, u64 end);

  /// In the trace event format, times in us from the first event. Process 0 is the host, with a row
  /// for each thread that has made calls; the others are devices. `otherData` has "host": 1 and
  /// "lost_events".
  std::string to_perfetto() const;

 private:
  struct HostRow {
    std::vector<HostCallRecord> calls{};
    u64 lost = 0;
  };
  u32 const capacity_;
  mutable std::mutex mutex_;
  std::map<std::thread::id, u32> numbers_;  // of threads, in the order of their first calls
  std::vector<HostRow> threads_;
  std::vector<StreamRow> rows_;
  StreamRow runs_{"all devices", "runs"};
};

}  // namespace meshpost::trace
