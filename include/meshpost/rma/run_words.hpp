#pragma once
#include "meshpost/base/types.hpp"

// What the begin and the end of a run need, found and done by the ranks themselves
// (rma/detail/run_begin.hpp, rma/detail/run_end.hpp).

namespace meshpost {

/// A counter's word that nobody consumed.
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
/// long as the World; those that count runs or devices go on from run to run.
struct RunWords {
  static constexpr u32 most_ranges = 64;
  static constexpr u32 most_left = 100'000;

  alignas(128) u32 ended;    ///< runs; stored by the first rank of each, the others have left
  alignas(128) u32 arrived;  ///< ranks of this device, in all runs, that came to the end (wraps)
  alignas(128) u32 met;      ///< devices, in all runs, whose ranks are all there (wraps)
  /// Upper half: ranks of this device, but its first, that have swept their shares. Lower: what
  /// they stored meanwhile (detail::Swept).
  alignas(128) u64 cleared;
  /// Devices, in all runs, all of whose ranks have (lower half, wraps); upper half: those of them
  /// that had news. `swept_before`: what it was when the last run ended that
  /// waited for it.
  alignas(128) u64 swept;
  u64 swept_before;
  /// Runs of several processes: devices, in all runs, that have begun (lower half, wraps); upper
  /// half: the sum of what says which kernel they run (RunState::begin_step).
  alignas(128) u64 begun;
  alignas(128) u32 left;  ///< words of counters that nobody consumed, in this run
  u32 timed;              ///< 1: a rank took a time in this run
  u32 range_count;
  u64 left_counts;  ///< LeftCount[most_left], in the heap
  SweptRange ranges[most_ranges];
};

/// What the first rank of a device tells the host at a run's end; in memory of both.
struct RunNews {
  u32 left;      ///< RunWords::left
  u32 timed;     ///< RunWords::timed
  u32 of_run;    ///< whose `left` and `timed` are; stored behind them, of a run that has some
  u32 anywhere;  ///< the last run of which a device of the World, this or another, has some
  u32 ended;     ///< RunWords::ended, stored last
  u32 begun;     ///< GPUs: the last run that has begun there
  /// By the host: the last run whose news it has read. Where runs are queued, the next one begins
  /// behind that, if there was any.
  alignas(128) u32 taken;
};

}  // namespace meshpost
