#pragma once
#include "meshpost/rma/rank.hpp"

// clang-format off
// The end of a run, by the ranks themselves. For a run that goes well, the host sweeps, copies and
// agrees on nothing.
//
//  1. All ranks meet, as in a barrier (barrier.hpp has the argument, for both ways to count). So
//     everything that any rank has sent is here then. By loads and stores: the meeting passes on
//     each rank's stores. By lane: packets are stores, too. By the proxy: the word that tells this
//     device of another goes the same way as that device's requests before it, and first in is
//     first out.
//  2. Each rank unpacks what is left in its lanes, and sets its share of the device's counters back
//     to 0. A count that was not 0 is unconsumed, and is noted. Nobody sends meanwhile, because all
//     are past 1 and none is past 3. A count that is still in a lane is noted where it is found. It
//     is not added to its counter, because another rank may have swept that already.
//  3. The first rank of each device waits until the others have done 2. It tells all devices, waits
//     for theirs, and then tells the host. The others leave. So the device's next run begins when
//     this one has ended everywhere, and finds all counters at 0. On the same way each device
//     learns if any device has news for its host. So either all processes have something to tell
//     each other, or none has. If runs are queued, all of one process, that rank does not wait. The
//     next run's ranks wait before they begin (begin_queued), and the host asks all devices. So the
//     trips between devices and between kernels overlap. If any device has news, they also wait
//     until the host has read the news of all: it reads who raised a counter last, and another
//     device's ranks could raise it again.
//  4. That rank releases to the host what the ranks sent before 1, with a fence between 1 and 3,
//     while the others sweep. It has acquired it with the meeting, and stores the run's end behind
//     the fence. So a device that finds nothing stores nothing in 2, and needs no fence after that.
//     If ranks stored in 2 (counts and words that were not 0, lanes that were used), that rank has
//     acquired their stores with their counts. There are then fences before it tells the devices
//     and the host. There are also fences if the host may have asked ranks to store something while
//     they waited (commands). A device that stored nothing tells the others without a fence that it
//     has swept. It stored nothing because all its loads found 0. If a load had found a count of
//     the next run, it would have been noted, and there would have been a fence before that run.
//
// Unless a process is lost, a run ends well on all devices or on none. Each device finds out which
// by itself, but if runs are queued, the host asks all of them. Otherwise, if one device has ended
// well, all devices had told it that they have swept. Their adds for the others are also in flight,
// and no rank that waits for it leaves. That is so even if the run is poisoned then, unless the
// host says that some rank has left before that point (Control::leave_the_end). In that case its
// device never says that it has swept, and the run ends well nowhere.
//
// The words that ranks poll count up through all runs, so nobody has to set them back. A rank reads
// how many runs have ended before it arrives; that number changes only when all have arrived.
//
// On a GPU an empty run is little more than this. There each load that waits for another takes a
// third of a microsecond. So values that stay the same during a run are loaded before the ranks
// meet. The rank that counts the others learns from the count if any has something to tell.
// clang-format on

namespace meshpost {
namespace detail {

/// The kinds of words that a rank stored while it swept. Each rank adds at most one of each to the
/// lower half of RunWords::cleared. A device has less than 2^16 ranks (make_layout).
struct Swept {
  static constexpr u32 noted = 1;          ///< unconsumed counts, or times
  static constexpr u32 cleared = 1 << 16;  ///< anything at all
  static constexpr u64 rank = u64{1} << 32;
};

/// True if 16 bytes of counters hold no count, or 16 bytes of words are 0. The word for a counter's
/// raiser stays (WindowInfo::raiser).
MESHPOST_FN inline bool is_clear(u32 const (&words)[4], bool counters) {
  bool clear = true;
  for (u32 k = 0; k < 4; ++k) clear &= counters ? static_cast<i32>(words[k]) <= 0 : words[k] == 0;
  return clear;
}

/// Returns what was stored.
MESHPOST_COLD inline u32 clear_words(RunState const& state, u32* words, bool counters) {
  u32 stored = Swept::cleared;
  for (u32 k = 0; k < 4; ++k) {
    if (!counters) {
      memory::store_relaxed(words + k, 0);
    } else if (static_cast<i32>(memory::load_relaxed(words + k)) > 0) {
      note_left(state, words + k, memory::take_all(words + k));
      stored |= Swept::noted;
    }
  }
  return stored;
}

/// Sweeps those of `lines`, 16 bytes each, that are `step` apart, four at a time: their loads are
/// in flight at once. Returns what was stored.
MESHPOST_FN inline u32 sweep_lines(RunState const& state, u32* at, u64 first, u64 end, u64 step,
                                   bool counters) {
  constexpr u32 ahead = 4;
  u32 stored = 0;
  for (u64 i = first; i < end; i += ahead * step) {
    u32 found[ahead][4] = {}, any = 0;
    for (u32 k = 0; k < ahead; ++k)
      if (i + k * step < end) memory::load_line(at + (i + k * step) * 4, found[k]);
    for (u32 k = 0; k < ahead; ++k) any |= found[k][0] | found[k][1] | found[k][2] | found[k][3];
    if (any == 0) [[likely]]
      continue;
    for (u32 k = 0; k < ahead; ++k)
      if (!is_clear(found[k], counters))
        stored |= clear_words(state, at + (i + k * step) * 4, counters);
  }
  return stored;
}

/// The ranges to sweep: their number, and the first two of them. Few Worlds have more.
struct Sweep {
  u32 ranges;
  SweptRange first, second;
};

/// Sweeps one of `workers` shares of the device's counters and words, by one thread. Returns what
/// was stored.
MESHPOST_FN inline u32 sweep(RunState const& state, Sweep const& what, u32 worker, u32 workers) {
  RunWords const* const words = words_on(state, state.device);
  char* const device = state.heap + state.device * state.stride;
  auto const begin_of = [&](SweptRange const& range) {
    return reinterpret_cast<u32*>(device + range.offset);
  };
  u32 stored = 0;
  if constexpr (memory::on_gpu) {
    // One line of each at once: there are seldom more.
    u32 found[2][4] = {};
    SweptRange const* const two[] = {&what.first, &what.second};
    for (u32 r = 0; r < 2; ++r)
      if (r < what.ranges && worker < two[r]->bytes / 16)
        memory::load_line(begin_of(*two[r]) + worker * u64{4}, found[r]);
    for (u32 r = 0; r < 2; ++r)
      if (!is_clear(found[r], two[r]->counters != 0)) [[unlikely]]
        stored |= clear_words(state, begin_of(*two[r]) + worker * u64{4}, two[r]->counters != 0);
  }
  SweptRange range = what.first, next = what.second;
  for (u32 r = 0; r < what.ranges; ++r) {
    u64 const lines = range.bytes / 16, share = (lines + workers - 1) / workers;
    // GPUs: neighbouring threads load neighbouring lines. CPUs: each thread has its own piece.
    if (memory::on_gpu) {
      u64 const first = worker + (r < 2 ? workers : 0);  // except the lines swept above
      stored |= sweep_lines(state, begin_of(range), first, lines, workers, range.counters != 0);
    } else {
      u64 const first = worker * share;
      stored |= sweep_lines(state, begin_of(range), first,
                            first + share < lines ? first + share : lines, 1, range.counters != 0);
    }
    range = next;
    if (r + 2 < what.ranges) next = words->ranges[r + 2];
  }
  return stored;
}

/// By one thread: adds `step` to that word of every device. With Order::system, the add is behind
/// all that the device's ranks did. By way of the host it adds only the lower half of `step`.
template <class Word>
MESHPOST_COLD inline void tell_devices(RunState const& state, Block block, Word RunWords::* word,
                                       Word step, Order order) {
  memory::fence(order);
  for (u32 device = 0; device < state.devices; ++device) {
    via::raise(state, block, device, &(words_on(state, device)->*word), step);
  }
}

/// By one thread, where each rank tells the devices itself: the same, as fast as possible.
template <class Word>
MESHPOST_FN inline void tell_in_reach(RunState const& state, Word RunWords::* word, Word step,
                                      Order order) {
  memory::fence(order);
  for (u32 device = 0; device < state.devices; ++device)
    memory::add(&(words_on(state, device)->*word), step, Order::none);
}

/// Out of line, so that it does not burden the kernel's own code. By all threads.
template <bool lanes>
MESHPOST_COLD void end_run(RunState const& state, Block block, u32 local_id) {
  RunWords* const words = words_on(state, state.device);
  u32 const thread = block.thread(), threads = block.threads();
  [[maybe_unused]] u32 const id = state.device * state.ranks_per_device + local_id;
  bool const first = thread == 0;
  // On a GPU the last 32 threads of each rank do not sweep. In the first rank the last of them
  // tells the others instead.
  constexpr u32 warp = 32;
  u32 const spare = memory::on_gpu && threads > 2 * warp ? warp : 0;
  // Of more ranks than at barriers: the way by the last rank is never in the cache here. (On two
  // H200s a run in a graph took 8.9 us instead of 9.8 with 264 ranks. More were not measured.)
  constexpr u32 most_tell = 300;
  bool const each_tells =
      state.devices == 1 || via::each_rank_tells(state, state.devices, state.ranks, most_tell);
  bool const tells = local_id == 0 && thread == (spare != 0 ? threads - 1 : 0);
  auto const all_come_to = [&](Condition const& condition, u32 bytes, RunStage stage) {
    return block.await_others(condition, bytes, stage, state.command_queue);
  };
  Sweep const what{words->range_count, words->ranges[0], words->ranges[1]};
  u32 const run = first || tells ? memory::load_relaxed(&words->ended) + 1 : 0;
  // No device adds to it before this rank has arrived.
  u64 const swept_before = tells ? memory::load_relaxed(&words->swept) : 0;
  bool poisoned = false;
  block.sync();
  if (first) {
    if (state.devices == 1) {
      memory::add(&words->met, 1, Order::device);
    } else if (each_tells) {
      tell_in_reach(state, &RunWords::met, u32{1}, Order::system);
    } else if (memory::fetch_add_device(&words->arrived, 1) + 1 == run * state.ranks_per_device) {
      tell_devices(state, block, &RunWords::met, state.ranks_per_device, Order::system);
    }
    poisoned =
        !all_come_to({&words->met, run * state.ranks}, sizeof words->met, RunStage::end).held;
  }
  if (block.any(poisoned)) return;
  if (tells && spare != 0) memory::fence(Order::system);  // 4. above
  u32 drains = 0, found = 0;
  if constexpr (lanes) {
    auto const drained = drain_lanes(state, block, id);
    drains = drained.threads;
    if (drained.noted) found = Swept::noted;
  }
  // First what other threads of this rank have noted by now, then what each thread notes itself.
  if (thread == drains && memory::load_relaxed(&words->timed) != 0) found |= Swept::noted;
  u32 const sweepers = threads - drains - spare;
  if (thread >= drains && thread < drains + sweepers)
    found |= sweep(state, what, local_id * sweepers + thread - drains,
                   state.ranks_per_device * sweepers);
  u32 stored = 0;
  if (block.any(found != 0)) {
    stored = Swept::cleared;
    if (block.any((found & Swept::noted) != 0)) stored |= Swept::noted;
  }
  if constexpr (lanes) {
    if (clear_lanes(state, block, id)) {
      stored |= Swept::cleared;
      block.sync();
    }
  }
  if (local_id == 0 ? !tells : !first) return;
  if (local_id != 0) {
    memory::add(&words->cleared, Swept::rank | stored, Order::device);
    return;
  }
  if (spare == 0) memory::fence(Order::system);
  auto const cleared =
      all_come_to({&words->cleared, (state.ranks_per_device - 1) * Swept::rank, WordType::u64_},
                  sizeof words->cleared, RunStage::clean_up);
  if (!cleared.held) return;
  memory::store(&words->cleared, u64{0}, Order::none);
  stored += static_cast<u32>(cleared.bits);
  bool const any = stored % Swept::cleared != 0;
  // Ranks that waited here may have stored something at the host's request, too.
  Order const behind = stored != 0 || state.command_queue.records ? Order::system : Order::none;
  u32 const left = any ? memory::load_relaxed(&words->left) : 0;
  u32 const timed = any ? memory::load_relaxed(&words->timed) : 0;
  bool anywhere = any;
  if (state.devices != 1) {
    u64 const step = any ? u64{1} << 32 | 1 : u64{1};
    if (each_tells) tell_in_reach(state, &RunWords::swept, step, behind);
    else tell_devices(state, block, &RunWords::swept, step, behind);
  }
  if (state.devices != 1 && state.followed == 0) {
    auto const swept =
        all_come_to({&words->swept, run * state.devices}, sizeof words->swept, RunStage::clean_up);
    if (!swept.held) return;
    anywhere = (swept.bits - swept_before) >> 32 != 0;
  }
  RunNews* const news = state.news;
  if (state.devices != 1) memory::store(&words->swept_before, swept_before, Order::none);
  memory::store_relaxed(&words->ended, run);
  if (any) {
    memory::store_relaxed(&news->left, left);
    memory::store_relaxed(&news->timed, timed);
    memory::store_relaxed(&news->of_run, run);
  }
  if (anywhere) memory::store_relaxed(&news->anywhere, run);
  memory::store(&news->ended, run, anywhere ? Order::system : behind);
  if (!any) return;
  // The words that the host has to read stay unchanged until then. If no run is queued behind this
  // one, the host reads them before it begins the next.
  if (state.followed != 0 && !all_come_to({&news->taken, run, WordType::u32_, Compare::equal},
                                          sizeof news->taken, RunStage::clean_up)
                                  .held)
    return;
  memory::store_relaxed(&words->left, 0);
  memory::store_relaxed(&words->timed, 0);
}

}  // namespace detail

MESHPOST_FN inline void Rank::finish() {
  block_.step(hooks::Step::rank_end);
#if defined(__CUDA_ARCH__)
  if (uses_lanes() && thread() < 32) detail::lane_cache().tell(thread());  // for the next run
#endif
  trace_life(true);
  block_.finish();
  if (uses_lanes()) detail::end_run<true>(*state_, block_, local_id_);
  else detail::end_run<false>(*state_, block_, local_id_);
}

}  // namespace meshpost
