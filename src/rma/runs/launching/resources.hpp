#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "meshpost/rma/run_state.hpp"
#include "meshpost/world/heap.hpp"
#include "rma/runs/ending/timeline.hpp"

namespace meshpost::detail {

/// One device's memory for runs, which use it one after the other.
struct DeviceRunMemory {
  Allocation reports, control, log_records, log_tail, log_head, timers;
  Allocation state;  // for kernels that take its address
  Allocation news;   // RunNews
  Allocation base;   // RunState::base

  /// Resets the ranks' reports: they have reported nothing yet.
  void expect_ranks();
  /// Clears everything that a run which ends well leaves clear itself.
  void clear(Device& owner);
};

/// The resources that the runs of a World use one after the other. Only the thread that supervises
/// the run in progress calls this.
class RunResources {
 public:
  RunResources(Layout const& layout, Heap& heap, u32 trace_events);
  /// May fail in one process alone. Called once.
  void make_memory();

  DeviceRunMemory& memory(u32 own_device) { return memory_[own_device]; }
  TraceMemory& trace() { return trace_; }
  u64 words() const { return words_; }  ///< RunWords of each device, in the heap
  /// Before a run: tells the devices which counters of the heap its end sweeps.
  void follow_heap();
  /// After runs whose ranks did not meet at their end: clears the counters and RunWords of own
  /// devices. `begun`: the value of RunWords::begun.
  void clear_counters(u32 last_run, u64 begun);
  /// Returns when no kernel of an ended run is still running. \throws Error if a device is broken
  void let_kernels_end();
  LaunchResources* launch_resources(
      std::string_view kind);  ///< null: launches on that kind share nothing
  /// The states of own devices side by side, for devices that share a launch; null: none do.
  RunState* split_states() const { return split_states_.as<RunState>(); }
  /// True if the kinds of all own devices queue launches.
  bool devices_queue() const { return devices_queue_; }

 private:
  char* words_on(u32 own) const { return heap_.at(layout_.first_device + own, words_); }

  Layout const& layout_;
  Heap& heap_;
  bool const devices_queue_;
  u64 words_ = 0;
  std::vector<Heap::Range> followed_;
  std::vector<DeviceRunMemory> memory_;
  TraceMemory trace_;
  Allocation split_states_;
  std::map<std::string, std::unique_ptr<LaunchResources>, std::less<>>
      launch_resources_;  // by kind
};

}  // namespace meshpost::detail
