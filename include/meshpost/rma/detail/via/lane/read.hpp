#pragma once
#include "meshpost/rma/detail/via/lane/lane.hpp"
#include "meshpost/rma/detail/via/sender.hpp"

// How messages get out of lanes (lane.hpp has the argument). On CPU devices thread 0 takes them,
// when the scheduler has seen that something has come. On GPUs warp 0 polls the counter and all
// lanes at once, a lane a thread, and its threads unpack together.

namespace meshpost::detail {

#if defined(__CUDA_ARCH__)

/// Polls for what a rank waits for, by the threads of its warp 0.
class LanePoll {
 public:
  /// The most frequent wait: for one count, which comes the same way as the last one of this
  /// counter. Its loads are in flight before it is known to be there, and one vote decides. True if
  /// it has come; else once() continues.
  __device__ static bool poll_fast(u32 thread, u32* counter, u32 part);

  __device__ explicit LanePoll(AwaitedCount const& awaited)
      : cache_(lane_cache()),
        rings_(cache_.rings),
        counter_(awaited.counter),
        part_(awaited.counter_part),
        count_(awaited.count),
        shift_(cache_.shift),
        thread_(cuda::thread_number()),
        claimed_(awaited.counter ? cache_.claimed : cache_.count),
        taken_(cache_.taken[thread_]),
        last_(cache_.last),
        ahead_(cache_.ahead),
        many_(awaited.count > 1) {}

  /// One poll. True if the count has been reached, and all that came before it is unpacked.
  __device__ bool once() {
    look();
    u32 const seen = __shfl_sync(all, word_, 0);
    took_ = false;
    for (u32 found = __ballot_sync(all, has_message()); found != 0; found &= found - 1) {
      u32 const lane = __ffs(static_cast<int>(found)) - 1;
      took_ |= (many_ && lane == looked_ && take_many(lane)) || take(lane);
    }
    claims_ = __shfl_sync(all, claims_, 0);
    if (claims_ > cache_.count) claims_ = cache_.count;
    if (claims_ > claimed_) claimed_ = claims_;
    if (closing_ != 0) return !took_ || --closing_ == 0;
    if (reached(matched_)) return true;
    if (!reached(seen + matched_)) return false;
    // If counts that came direct are part of it, what was sent by lane before them is unpacked,
    // too.
    if (thread_ == 0) memory::acquire_fence();
    __syncwarp();
    claimed_ = cache_.count;
    closing_ = LaneCache::lanes << shift_;  // a bound, however fast others send
    return false;
  }
  /// Takes all that has come. True if the count has been reached.
  __device__ bool drain() {
    bool holds = false;
    claimed_ = cache_.count;
    u32 left = LaneCache::lanes << shift_;
    do holds = once();
    while ((took_ || closing_ != 0) && !holds && --left != 0);
    return holds;
  }
  /// Takes the count that was found by lane and is not in the counter. The caller must account for
  /// it.
  __device__ u32 matched() {
    u32 const count = matched_;
    matched_ = 0;
    return count;
  }
  /// Adds that count to the counter, for others to see.
  __device__ void commit() {
    if (u32 const count = matched(); count != 0 && thread_ == 0)
      memory::add(counter_, count, Order::none);
    __syncwarp();
  }
  __device__ bool first() const { return thread_ == 0; }
  __device__ bool any(bool yes) const { return __any_sync(all, yes) != 0; }
  /// Stores the state with which the next poll begins.
  __device__ void keep() const {
    if (thread_ != 0) return;
    cache_.claimed = claims_;
    cache_.last = last_;
    cache_.ahead = ahead_;
  }

 private:
  static constexpr u32 all = ~0u, loads_ahead = 3;
  struct Awaited;
  template <u32 loads>
  struct Look;
  template <u32 loads>
  __device__ static bool watch(Awaited const& one, Look<loads>& look);

  __device__ bool reached(u32 seen) const { return static_cast<i32>(seen - count_) >= 0; }
  __device__ bool has_message() const { return thread_ < claimed_ && head_[3] == flag(taken_); }
  __device__ u32 flag(u32 position) const { return Lanes::flag(position, shift_); }
  __device__ Packet const* packet(u32 lane, u32 position) const {
    return rings_ + ((lane << shift_) + Lanes::index(position, shift_));
  }

  /// All loads are in flight at the same time: the heads of all lanes, the counter, and the packets
  /// behind the head if the next message is like the last.
  __device__ void look() {
    if (thread_ == 0) claims_ = memory::load_relaxed(cache_.claims);
    looked_ = last_;
    loaded_ = ahead_;
    u32 const behind = __shfl_sync(all, taken_, static_cast<int>(looked_)) + 2 + thread_;
#pragma unroll
    for (u32 k = 0; k < loads_ahead; ++k)
      if (k < loaded_) memory::load_packet(packet(looked_, behind + 32 * k), ahead_words_[k]);
    if (many_) memory::load_packet(packet(looked_, behind - 2), row_);
    if (thread_ < claimed_) {
      memory::load_packet(packet(thread_, taken_) + 1, first_);  // taken_ is even
      memory::load_packet(packet(thread_, taken_), head_);
    }
    if (thread_ == 0 && counter_) {
      // Counts from ranks of this device are moved into the counter.
      u32* const near = WindowInfo::beside(counter_, part_, WindowInfo::near_counts);
      if (memory::load_relaxed(near) != 0) {
        memory::add(counter_, memory::take_all(near), Order::none);
        cache_.guess_of(counter_).lane = LaneCache::Guess::near;
      }
    }
    if (thread_ == 0 && counter_) word_ = memory::load_relaxed(counter_);
    memory::all_loaded(head_);
  }

  /// Unpacks a lane's message, if all of it is there.
  __device__ bool take(u32 lane) {
    auto const from = [&](u32 value) { return __shfl_sync(all, value, static_cast<int>(lane)); };
    u32 const taken = from(taken_), b = from(head_[1]), c = from(head_[2]);
    auto const header = LaneHeader::from(from(head_[0]), b, c);
    if (header.acquires) {
      if (thread_ == lane) memory::acquire_fence();
      __syncwarp();  // all unpack behind it, perhaps over bytes that went direct
    }
    bool const whole = unpack(lane, taken, header);
    if (!__all_sync(all, whole)) return false;
    pass_all(lane, b, c, header, 1);
    return true;
  }

  /// Unpacks short messages that follow each other in a lane and differ only in their place: as
  /// many as one load of the warp has brought. Returns false if there are not two.
  ///
  /// It is correct as take() is, message by message: the thread that finds a header acquires if the
  /// header says so, and nothing is unpacked before. But they are not unpacked one after the other.
  /// So they must not be for the same bytes. By the rule of delivery they aren't, because none of
  /// them is consumed.
  __device__ bool take_many(u32 lane) {
    auto const from = [&](u32 value) { return __shfl_sync(all, value, static_cast<int>(lane)); };
    u32 const taken = from(taken_), b = from(head_[1]), c = from(head_[2]);
    auto header = LaneHeader::from(0, b, c);
    u32 const each = header.packets();
    if (each > 16) return false;
    u32 const number = thread_ / each, address = thread_ % each;  // of this thread's packet
    bool const first = address == 0;
    bool const like =
        row_[3] == flag(taken + thread_) && (!first || (row_[1] == b && row_[2] == c));
    u32 const unlike = ~__ballot_sync(all, like);
    u32 const count = (unlike == 0 ? 32 : __ffs(static_cast<int>(unlike)) - 1) / each;
    if (count < 2) return false;
    if (header.acquires) {
      if (number < count && first) memory::acquire_fence();
      __syncwarp();
    }
    u32 const offset = __shfl_sync(all, row_[0], static_cast<int>(number * each));
    header.offset = LaneHeader::from(offset, b, c).offset;
    if (number < count && !first) put(header, address - 1, row_, taken + thread_);
    pass_all(lane, b, c, header, count);
    return true;
  }

  /// Counts messages that have been unpacked. `b` and `c`, the same for all threads, are their
  /// header's words. The place in them may differ, which does not matter.
  __device__ void pass_all(u32 lane, u32 b, u32 c, LaneHeader const& header, u32 count) {
    u32* const counter = reinterpret_cast<u32*>(cache_.device) + header.counter;
    if (counter == counter_) matched_ += count;
    else if (thread_ == 0) cache_.raise(counter, count);
    if (thread_ == 0) cache_.remember(counter, {b, c, lane}, header);
    if (thread_ == lane) pass(header, counter, count);
    last_ = lane;
    u32 const behind = header.packets() - 2;
    ahead_ = (behind + 31) / 32 < loads_ahead ? (behind + 31) / 32 : loads_ahead;
  }

  // Words of a message may go into the window before the rest has come, because nobody may read
  // them yet. True if this thread's share of packets has come.
  __device__ bool unpack(u32 lane, u32 taken, LaneHeader const& header) {
    if (header.bytes == 0) return true;
    bool whole = true;
    if (thread_ == lane) whole = put(header, 0, first_, taken + 1);
    u32 const packets = (header.bytes + 11) / 12;
    u32 i = 1 + thread_;
    if (lane == looked_) {
#pragma unroll
      for (u32 k = 0; k < loads_ahead; ++k)
        if (k < loaded_) {
          if (i < packets) whole &= put(header, i, ahead_words_[k], taken + 1 + i);
          i += 32;
        }
    }
#pragma unroll 4
    for (; i < packets; i += 32) {
      u32 words[4];
      memory::load_packet(packet(lane, taken + 1 + i), words);
      whole &= put(header, i, words, taken + 1 + i);
    }
    return whole;
  }

  // The i-th packet of a message's bytes.
  __device__ bool put(LaneHeader const& header, u32 i, u32 const (&words)[4], u32 position) {
    if (words[3] != flag(position)) return false;
    char* const target = cache_.device + header.offset;
#pragma unroll
    for (u32 k = 0; k < 3; ++k) header.put_word(target, i * 12 + k * 4, words[k]);
    return true;
  }

  // By the lane's own thread: stores the counter's raiser, and tells the sender that there is room
  // again.
  __device__ void pass(LaneHeader const& header, u32* counter, u32 count) {
    u64 owner = cache_.owners[thread_];
    if (owner == 0) owner = cache_.owner_of(thread_);
    memory::store_relaxed(header.sender_of(counter),
                          WindowInfo::raiser(static_cast<u32>(owner) - 1));
    taken_ += count * header.packets();
    cache_.taken[thread_] = taken_;
    cache_.tell(thread_);
  }

  LaneCache& cache_;
  Packet const* rings_;
  u32* counter_;
  u32 part_;  // WindowInfo::counter_part
  u32 count_, matched_ = 0;
  u32 shift_, thread_;
  u32 claimed_, claims_ = 0;  // lanes that it polls, and lanes for the next poll
  u32 taken_, last_, ahead_;
  bool took_ = false;
  u32 looked_ = 0, loaded_ = 0;  // last_ and ahead_ of the last poll
  bool const many_;  // counts are awaited: it also polls the last lane for a row of short ones
  u32 closing_ = 0;  // polls left, after the count was reached by counts that came direct
  u32 head_[4] = {}, first_[4] = {}, ahead_words_[loads_ahead][4] = {}, word_ = 0;
  u32 row_[4] = {};
};

/// Unpacks all that has come for this rank; by its warp 0. Out of line: a wait for a word needs it
/// once, behind the wait.
MESHPOST_COLD inline void take_all_lanes() {
  LanePoll poll({.counter = nullptr, .count = 1});
  poll.drain();
  poll.keep();
}

#else

MESHPOST_FN inline u32 claimed_lanes(RunState const& state, LaneEnd const& mine) {
  u32 const claims = memory::load_acquire(mine.claims());
  return claims < state.lanes.count ? claims : state.lanes.count;
}

/// Unpacks a lane's next message, if all of it is there. By one thread. `ends`: the run ends; see
/// drain_lanes().
MESHPOST_FN inline bool take_from_lane(RunState const& state, LaneEnd const& mine, u32 lane,
                                       bool ends = false) {
  constexpr u32 each = memory::packet_words;
  u32 const taken = memory::load_relaxed(mine.taken(lane)), shift = state.lanes.shift;
  auto const load = [&](u32 i, u32* words) {
    u32 const position = taken + i;
    return memory::load_packet(mine.ring(lane) + Lanes::index(position, shift), words,
                               Lanes::flag(position, shift));
  };
  u32 words[2 * each];
  if (!load(0, words) || !load(1, words + each)) return false;
  auto const header = LaneHeader::from(words[0], words[1], words[2]);
  for (u32 i = 2; i < header.packets(); ++i)
    if (!load(i, words)) return false;
  for (u32 i = Lanes::header_words; i < header.words(); ++i) {
    load(i / each, words);
    header.put_word(mine.device() + header.offset, (i - Lanes::header_words) * 4, words[i % each]);
  }
  u64 const owner = memory::load_bits_acquire(mine.owner(lane), sizeof(u64));
  u32 const sender = static_cast<u32>(owner) - 1, begin = static_cast<u32>(owner >> 32);
  u32* const counter = reinterpret_cast<u32*>(mine.device()) + header.counter;
  if (ends) note_left(state, counter, 1);
  else memory::add(counter, 1, Order::none);
  memory::store_relaxed(header.sender_of(counter), WindowInfo::raiser(sender));
  u32 const now = taken + header.packets();
  memory::store(mine.taken(lane), now, Order::none);
  if (!ends) memory::store(LaneEnd(state, sender).credit(mine.rank()), now - begin, Order::none);
  return true;
}

/// Unpacks all that has come for a rank. True if there was something.
MESHPOST_FN inline bool take_from_lanes(RunState const& state, u32 rank, bool ends = false) {
  LaneEnd const mine(state, rank);
  u32 const claimed = claimed_lanes(state, mine);
  bool took = false;
  for (u32 lane = 0; lane < claimed; ++lane)
    while (take_from_lane(state, mine, lane, ends)) took = true;
  return took;
}

/// True if a message has come. Any thread of the host may ask.
MESHPOST_FN inline bool lanes_have_news(RunState const& state, u32 rank) {
  LaneEnd const mine(state, rank);
  u32 const claimed = claimed_lanes(state, mine), shift = state.lanes.shift;
  for (u32 lane = 0; lane < claimed; ++lane) {
    u32 const taken = memory::load_acquire(mine.taken(lane));
    u32 words[memory::packet_words];
    if (memory::load_packet(mine.ring(lane) + Lanes::index(taken, shift), words,
                            Lanes::flag(taken, shift)))
      return true;
  }
  return false;
}

#endif

/// Unpacks what is left in a rank's lanes when all ranks have met at the end of a run; its counts
/// are noted. Senders are not told that there is room, because they forget their lanes. By all
/// threads.
struct Drained {
  u32 threads;  ///< the first threads, for which others need not wait
  bool noted;   ///< this thread has noted counts
};
MESHPOST_FN inline Drained drain_lanes([[maybe_unused]] RunState const& state, Block block,
                                       [[maybe_unused]] u32 rank) {
  bool noted = false;
#if defined(__CUDA_ARCH__)
  if (block.thread() < 32) {
    if (block.thread() == 0) lane_cache().ends = true;
    __syncwarp();
    take_all_lanes();
    noted = block.thread() == 0 && lane_cache().noted;  // which it wrote itself
  }
  return {block.threads() > 32 ? 32u : 0u, noted};
#else
  if (block.thread() == 0) noted = take_from_lanes(state, rank, true);
  return {0, noted};
#endif
}

/// Behind that, and behind a barrier of the rank: clears the lanes' owners, and the senders' state
/// of lanes. By all threads. Returns true if there was anything to clear: then the rank meets
/// behind it.
MESHPOST_FN inline bool clear_lanes(RunState const& state, Block block, u32 rank) {
  LaneEnd const mine(state, rank);
  u32 const thread = block.thread(), threads = block.threads();
#if defined(__CUDA_ARCH__)
  bool const claimed = lane_cache().claimed != 0, asked = lane_cache().asks;  // of the drain
#else
  bool const claimed = block.any(thread == 0 && memory::load_relaxed(mine.claims()) != 0);
  bool const asked = true;
#endif
  if (claimed) {
    if (thread == 0) memory::store_relaxed(mine.claims(), 0);
    for (u32 lane = thread; lane < state.lanes.count; lane += threads)
      memory::store(mine.owner(lane), u64{0}, Order::none);
  }
  if (asked) {
    for (u32 of = thread; of < state.ranks; of += threads) {
      memory::store_relaxed(mine.credit(of), 0);
      mine.out(of) = {};
    }
  }
  return claimed || asked;
}

}  // namespace meshpost::detail

namespace meshpost::via::lane {

/// Unpacks all that has come by lane, into the window and the counters; by all threads.
MESHPOST_FN inline void read(Sender& self) {
  if (!self.uses_lanes()) return;
#if defined(__CUDA_ARCH__)
  if (self.thread() < 32) detail::take_all_lanes();
#else
  if (self.thread() == 0 && self.block_.step(hooks::Step::lane_take))
    detail::take_from_lanes(*self.state_, self.id_);
#endif
  self.block_.sync();
}

}  // namespace meshpost::via::lane
