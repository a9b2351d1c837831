#pragma once
#include "meshpost/base/types.hpp"

// Words for the begin and the end of a run. The ranks themselves find and do both
// (rma/detail/run_begin.hpp, rma/detail/run_end.hpp).

namespace meshpost {

/// A word of a counter with unconsumed notifications.
struct LeftCount {
  u64 offset;  ///< in the device's part of the heap
  u32 count;
  u32 unused;
};

/// Memory of each device that is 0 when a run begins.
struct SweptRange {
  u64 offset, bytes;  ///< in the heap; multiples of 128
  u32 counters;       ///< 1: what is not 0 is reported
  u32 unused;
};

/// A device's words for the begin and the end of a run, at the same offset on each. They live as
/// long as the World; those that count runs or devices continue from run to run.
struct RunWords {
  static constexpr u32 most_ranges = 64;
  static constexpr u32 most_left = 100'000;

  alignas(128) u32 ended;  ///< runs; stored by the first rank of each, after the others have left
  /// Ranks of this device, in all runs, that reached the end (wraps). Not counted where each rank
  /// tells the devices itself.
  alignas(128) u32 arrived;
  alignas(128) u32 met;  ///< ranks, in all runs, that this device was told of (wraps)
  /// Upper half: ranks of this device, except the first, that have swept their shares. Lower: what
  /// they stored meanwhile (detail::Swept).
  alignas(128) u64 cleared;
  /// Lower half: devices, in all runs, whose ranks have all swept (wraps). Upper half: those of
  /// them that had news. `swept_before`: its value before the last run's devices added.
  alignas(128) u64 swept;
  u64 swept_before;
  u32 taken;  ///< GPUs: RunNews::taken of the host, as far as a run had to wait for it
  /// Runs of several processes. Lower half: devices, in all runs, that have begun (wraps). Upper
  /// half: the sum of the numbers of the kernels that they run (RunState::begin_step).
  alignas(128) u64 begun;
  alignas(128) u32 left;  ///< words of counters with unconsumed notifications, in this run
  u32 timed;              ///< 1: a rank took a time in this run
  u32 range_count;
  u64 left_counts;  ///< LeftCount[most_left], in the heap
  SweptRange ranges[most_ranges];
};

/// News that the first rank of a device has for the host at a run's end; in memory of both.
struct RunNews {
  u32 left;      ///< RunWords::left
  u32 timed;     ///< RunWords::timed
  u32 of_run;    ///< the run of `left` and `timed`; stored behind them, if the run has news
  u32 anywhere;  ///< the last run with news on any device of the World
  u32 ended;     ///< RunWords::ended, stored last
  u32 begun;     ///< GPUs: the last run that has begun there
  /// Stored by the host: the last run whose news it has read. If a run had news and others are
  /// queued, the next one begins only after that.
  alignas(128) u32 taken;
};

}  // namespace meshpost
