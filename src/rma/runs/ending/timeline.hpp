#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "meshpost/device/core_slice.hpp"
#include "meshpost/device/device.hpp"
#include "meshpost/trace/timeline.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost::detail {

/// The record of the ranks of one run on one device.
struct DeviceTrace {
  Allocation events, used;           // as TraceBuffer has them
  std::unique_ptr<Stream> stream{};  // to read them; CPU devices need none
  CoreRecord cores{};                // empty on GPUs
};

/// The same for all of this process's devices.
struct RunTrace {
  u32 capacity = 0;  // events of a rank
  std::vector<DeviceTrace> devices{};

  TraceBuffer buffer(u32 own_device, u32 run) const;
};

/// A run with recorded events. Refers to its World, which writes all timelines before it ends.
struct TracedRun {
  std::string kernel;
  Layout const* layout = nullptr;
  std::shared_ptr<RunTrace> trace{};
  std::vector<i64> clock_offsets{};  // of own devices, to the host's clock
  u32 number = 0;
  u64 begin = 0, end = 0;  // host clock

  /// Reads it. \throws Error(device_failed)
  Timeline collect() const;
};

/// A World's memory for the records of runs. There are several pieces, so that the next run can
/// begin while an earlier timeline is still to be written.
class TraceMemory {
 public:
  /// `capacity`: events to keep for each rank.
  TraceMemory(Layout const& layout, u32 capacity);
  TraceMemory(TraceMemory const&) = delete;
  TraceMemory& operator=(TraceMemory const&) = delete;

  /// A piece for one run. It comes back when nobody holds it any more. Waits for the writer if
  /// there is no memory for another piece. \throws Error(out_of_memory) if there is none for the
  /// first
  std::shared_ptr<RunTrace> take();
  /// The offsets to add to the clocks of own devices to get the host's. Not while a run is in
  /// progress.
  /// \throws Error(device_failed)
  std::vector<i64> clock_offsets();

 private:
  std::unique_ptr<RunTrace> make() const;
  void give_back(RunTrace* trace);

  Layout const& layout_;
  u32 const capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<RunTrace>> free_;
  // One is written, one waits to be written, and a run records into one.
  u32 made_ = 0, most_ = 3;
  std::vector<i64> offsets_;
  u64 aligned_at_ = 0;  // host clock
};

}  // namespace meshpost::detail
