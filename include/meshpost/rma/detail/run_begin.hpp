#pragma once
#include "meshpost/rma/rank.hpp"

// The begin of a run: what the ranks find out before the kernel begins, without the host.
//
// If there are several processes, each launches when its host is ready, and they agree on nothing
// before. So the ranks meet first: a device tells all devices that its ranks have begun, and each
// rank waits until all devices have told its own. Then no rank sends to a process that has not
// launched, whose host may still read and write its windows. All ranks also see what each host did
// before it launched. A host's stores come before its launch, the launch before the device's add,
// and the add before what follows the wait.
//
// With its count a device adds a number of its kernel and the number of threads. The sum is known
// if all run the same kernel. Ranks that find another sum leave before their kernel begins, and the
// hosts find out which processes differ. Nobody adds to the word again before the run has ended, so
// all ranks find the same sum.

namespace meshpost {
namespace detail {

/// True if the kernel is to begin. By all threads.
MESHPOST_COLD inline bool begin_run(RunState const& state, Block block, u32 local_id) {
  RunWords const* const words = words_on(state, state.device);
  bool leaves = false;
  if (block.thread() == 0) {
    if (local_id == 0)
      tell_devices(state, block, &RunWords::begun, state.begin_step, Order::system);
    // Its lower half counts devices.
    auto const begun =
        block.await_others({&words->begun, static_cast<u32>(state.begin_total)},
                           sizeof words->begun, RunStage::begin, state.command_queue);
    leaves = !begun.held || begun.bits != state.begin_total;
  }
  return !block.any(leaves);
}

/// GPUs: tells the host that the run has begun there. Returns true if the kernel is to begin. It
/// must not be behind a failure. The run before must have ended on all devices, so that none of
/// them reads its counters any more, and the host must have read its news. By all threads.
MESHPOST_FN inline bool begin_queued(RunState const& state, Block block, u32 local_id) {
  bool leaves = false;
  if (block.thread() == (block.threads() > 32 ? 32 : 0)) {  // the first warp polls its lanes
    RunWords* const words = words_on(state, state.device);
    bool const waits = state.behind != 0 && state.devices != 1;
    // All loads are in flight at once.
    u32 const base = state.base ? memory::load_relaxed(state.base) : 0;
    u32 const ended = state.behind != 0 ? memory::load_relaxed(&words->ended) : 0;
    u64 const before = waits ? memory::load_relaxed(&words->swept_before) : 0;
    u64 swept = waits ? memory::load_bits_acquire(&words->swept, sizeof words->swept) : 0;
    u32 const number = state.number + base;
    // Before the wait, because only a run that has begun has a deadline to end it.
    if (local_id == 0) memory::store_relaxed(&state.news->begun, number);
    leaves = state.behind != 0 && ended + 1 != number;
    Condition const all{&words->swept, (number - 1) * state.devices};
    auto const await = [&](Condition const& condition, u32 bytes) {
      auto const awaited =
          block.await_others(condition, bytes, RunStage::begin, state.command_queue);
      leaves = !awaited.held;
      return awaited.bits;
    };
    if (!leaves && waits && !holds(all, swept)) swept = await(all, sizeof words->swept);
    if (!leaves && (swept - before) >> 32 != 0) [[unlikely]] {
      // One rank looks at the host's word, over the bus, and tells the others. The words may be
      // older than a counter's range, since most runs have no news.
      auto const is_the_last_run = [&](u32 const* word) {
        return Condition{word, number - 1, WordType::u32_, Compare::equal};
      };
      if (local_id != 0) {
        await(is_the_last_run(&words->taken), sizeof words->taken);
      } else {
        await(is_the_last_run(&state.news->taken), sizeof state.news->taken);
        if (!leaves) memory::store(&words->taken, number - 1, Order::device);
      }
    }
  }
  return state.behind == 0 || !block.any(leaves);
}

}  // namespace detail

MESHPOST_FN inline bool Rank::start() {
#if defined(__CUDA_ARCH__)
  // Before it is known whether the run begins; another warp finds that out meanwhile.
  if (uses_lanes() && thread() < 32) detail::lane_cache().start(*state_, id_, thread());
  if (!detail::begin_queued(*state_, block_, local_id_)) return false;
#endif
  if (state_->begin_step != 0 && !detail::begin_run(*state_, block_, local_id_)) return false;
  trace_life(false);  // not in Rank's constructor: some operations make a Rank
#if defined(__CUDA_ARCH__)
  if (uses_lanes()) block_.sync();
#endif
  return true;
}

}  // namespace meshpost
