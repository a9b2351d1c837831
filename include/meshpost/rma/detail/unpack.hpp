#pragma once
#include "meshpost/rma/rank.hpp"

// How messages get out of lanes (lanes.hpp says why it is right). On CPU devices thread 0 takes
// them, when the scheduler has seen that something has come. On GPUs warp 0 looks at the counter
// and at all lanes at once, a lane a thread, and unpacks together.

namespace meshpost::detail {

MESHPOST_FN inline u32 claimed_lanes(RunState const& state, LaneEnd const& mine) {
  u32 const claims = memory::load_acquire(mine.claims());
  return claims < state.lanes.count ? claims : state.lanes.count;
}

#if defined(__CUDA_ARCH__)

/// Looks for what a rank waits for, by the threads of its warp 0.
class LanePoll {
 public:
  __device__ LanePoll(RunState const& state, u32 rank, u32* counter, u32 count)
      : state_(state),
        mine_(state, rank),
        rank_(rank),
        counter_(counter),
        count_(count),
        rings_(mine_.packet(0, 0)),
        shift_(state.lanes.shift),
        thread_(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)),
        live_(thread_ < state.lanes.count),
        taken_(lane_cache().taken[thread_]),
        last_(lane_cache().last),
        ahead_(lane_cache().ahead),
        acquires_(lane_cache().acquires != 0) {}

  /// One look. Whether the count has been reached, and all that came before it is unpacked.
  __device__ bool once() {
    look();
    u32 const seen = __shfl_sync(all, word_, 0);
    took_ = false;
    for (u32 found = __ballot_sync(all, has_message()); found != 0; found &= found - 1)
      took_ |= take(__ffs(static_cast<int>(found)) - 1);
    if (closing_ != 0) return !took_ || --closing_ == 0;
    if (reached(matched_)) return true;
    if (!reached(seen + matched_)) return false;
    // Counts that came direct take part: what was sent by lane before them goes in, too.
    if (!acquires_ && thread_ == 0) memory::load_acquire(counter_);
    __syncwarp();
    acquires_ = true;
    closing_ = LaneCache::lanes << shift_;  // however fast others send on
    return false;
  }
  /// Takes all that has come. Whether the count has been reached.
  __device__ bool drain() {
    bool holds = false;
    u32 left = LaneCache::lanes << shift_;
    do holds = once();
    while ((took_ || closing_ != 0) && !holds && --left != 0);
    return holds;
  }
  /// What was found by lane, and is not in the counter: the caller's from now on.
  __device__ u32 matched() {
    u32 const count = matched_;
    matched_ = 0;
    return count;
  }
  /// Puts it into the counter, for others to see.
  __device__ void settle() {
    if (u32 const count = matched(); count != 0 && thread_ == 0)
      memory::add(counter_, count, Order::none);
    __syncwarp();
  }
  __device__ bool first() const { return thread_ == 0; }
  __device__ bool any(bool yes) const { return __any_sync(all, yes) != 0; }
  /// What the next poll begins with.
  __device__ void keep() const {
    if (thread_ != 0) return;
    LaneCache& cache = lane_cache();
    cache.last = last_;
    cache.ahead = ahead_;
    cache.acquires = acquires_;
  }

 private:
  static constexpr u32 all = ~0u, loads_ahead = 3;

  __device__ bool reached(u32 seen) const { return static_cast<i32>(seen - count_) >= 0; }
  __device__ bool has_message() const { return live_ && head_[3] == flag(taken_); }
  __device__ u32 flag(u32 position) const { return (position >> shift_) + 1; }
  __device__ Packet const* packet(u32 lane, u32 position) const {
    return rings_ + ((lane << shift_) + (position & ((1u << shift_) - 1)));
  }

  /// All loads are under way at the same time: the heads of all lanes, the counter, and what comes
  /// behind the head if the next message is like the last.
  __device__ void look() {
    acquired_ = acquires_;
    if (live_) {
      Packet const* const head = packet(thread_, taken_);
      if (acquired_) memory::load_packet_acquire(head, head_);
      else memory::load_packet(head, head_);
      memory::load_packet(head + 1, first_);  // taken_ is even
    }
    looked_ = last_;
    loaded_ = ahead_;
    u32 const behind = __shfl_sync(all, taken_, static_cast<int>(looked_)) + 2 + thread_;
#pragma unroll
    for (u32 k = 0; k < loads_ahead; ++k)
      if (k < loaded_) memory::load_packet(packet(looked_, behind + 32 * k), ahead_words_[k]);
    if (thread_ == 0 && counter_)
      word_ = acquired_ ? memory::load_acquire(counter_) : memory::load_relaxed(counter_);
  }

  /// Unpacks a lane's message, if all of it is there.
  __device__ bool take(u32 lane) {
    auto const from = [&](u32 value) { return __shfl_sync(all, value, static_cast<int>(lane)); };
    u32 const taken = from(taken_);
    auto const header = LaneHeader::from(from(head_[0]), from(head_[1]), from(head_[2]));
    if (header.acquires && !acquired_) {
      if (thread_ == lane) memory::load_packet_acquire(packet(lane, taken), head_);
      __syncwarp();
    }
    bool const whole = unpack(lane, taken, header);
    if (!__all_sync(all, whole)) return false;
    u32* const counter = reinterpret_cast<u32*>(mine_.device()) + header.counter;
    if (counter == counter_) ++matched_;
    else if (thread_ == 0) memory::add(counter, 1, Order::none);
    if (thread_ == lane) pass(header, counter);
    last_ = lane;
    u32 const behind = header.packets() - 2;
    ahead_ = (behind + 31) / 32 < loads_ahead ? (behind + 31) / 32 : loads_ahead;
    acquires_ = header.acquires;
    return true;
  }

  // Words of a message may go into the window before the rest has come: nobody may look at them
  // yet. Whether this thread's share of packets is there.
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
    char* const target = mine_.device() + header.offset;
#pragma unroll
    for (u32 k = 0; k < 3; ++k)
      if (i * 12 + k * 4 < header.bytes) header.put_word(target, i * 12 + k * 4, words[k]);
    return true;
  }

  // By the lane's own thread: says who raised the counter, and that there is room again.
  __device__ void pass(LaneHeader const& header, u32* counter) {
    LaneCache& cache = lane_cache();
    u64 owner = cache.owners[thread_];
    if (owner == 0)
      cache.owners[thread_] = owner = memory::load_bits_acquire(mine_.owner(thread_), sizeof(u64));
    u32 const sender = static_cast<u32>(owner) - 1;
    memory::store_relaxed(counter + header.senders * (LaneHeader::line / sizeof(u32)), sender + 1);
    taken_ += header.packets();
    cache.taken[thread_] = taken_;
    memory::store_relaxed(mine_.taken(thread_), taken_);
    if (taken_ - cache.returned[thread_] < (1u << shift_) / 4) return;
    cache.returned[thread_] = taken_;
    memory::store_relaxed(LaneEnd(state_, sender).credit(rank_),
                          taken_ - static_cast<u32>(owner >> 32));
  }

  RunState const& state_;
  LaneEnd mine_;
  u32 rank_;
  u32* counter_;  // null: none
  u32 count_, matched_ = 0;
  Packet const* rings_;
  u32 shift_, thread_;
  bool live_;  // there is a lane for this thread
  u32 taken_, last_, ahead_;
  bool acquires_, took_ = false;
  u32 looked_ = 0, loaded_ = 0;  // last_, ahead_ and acquires_ of the last look
  bool acquired_ = false;
  u32 closing_ = 0;  // looks left, once the count was reached by counts that came direct
  u32 head_[4] = {}, first_[4] = {}, ahead_words_[loads_ahead][4] = {}, word_ = 0;
};

#else

/// Unpacks a lane's next message, if all of it is there. By one thread.
MESHPOST_FN inline bool take_from_lane(RunState const& state, u32 rank, u32 lane) {
  constexpr u32 each = memory::packet_words;
  LaneEnd const mine(state, rank);
  u32 const taken = memory::load_relaxed(mine.taken(lane));
  auto const load = [&](u32 i, u32* words) {
    return memory::load_packet(mine.packet(lane, taken + i), words, state.lanes.flag(taken + i));
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
  memory::add(counter, 1, Order::none);
  memory::store_relaxed(counter + header.senders * (LaneHeader::line / sizeof(u32)), sender + 1);
  u32 const now = taken + header.packets();
  memory::store(mine.taken(lane), now, Order::none);
  memory::store(LaneEnd(state, sender).credit(rank), now - begin, Order::none);
  return true;
}

/// Unpacks all that has come for a rank.
MESHPOST_FN inline void take_from_lanes(RunState const& state, u32 rank) {
  u32 const claimed = claimed_lanes(state, LaneEnd(state, rank));
  for (u32 lane = 0; lane < claimed; ++lane)
    while (take_from_lane(state, rank, lane)) continue;
}

/// Whether something has come. Any thread of the host may ask.
MESHPOST_FN inline bool lanes_have_news(RunState const& state, u32 rank) {
  LaneEnd const mine(state, rank);
  u32 const claimed = claimed_lanes(state, mine);
  for (u32 lane = 0; lane < claimed; ++lane) {
    u32 const taken = memory::load_acquire(mine.taken(lane));
    u32 words[memory::packet_words];
    if (memory::load_packet(mine.packet(lane, taken), words, state.lanes.flag(taken))) return true;
  }
  return false;
}

#endif

}  // namespace meshpost::detail

namespace meshpost {

/// All that has come by lane, into the window and the counters; by all threads.
MESHPOST_FN inline void Rank::take_lanes() {
  if (!uses_lanes()) return;
#if defined(__CUDA_ARCH__)
  if (thread() < 32) {
    detail::LanePoll poll(*state_, id_, nullptr, 1);
    poll.drain();
  }
#else
  if (thread() == 0 && block_.step(hooks::Step::lane_take)) detail::take_from_lanes(*state_, id_);
#endif
  block_.sync();
}

MESHPOST_FN inline void Rank::start() {
#if defined(__CUDA_ARCH__)
  if (!uses_lanes()) return;
  if (thread() < 32) detail::lane_cache().start(*state_, id_, thread());
  block_.sync();
#endif
}

namespace detail {
/// A kernel that unpacks what nobody has waited for.
struct DrainLanes {
  MESHPOST_FN void operator()(Rank& self) const { self.take_lanes(); }
};
}  // namespace detail

}  // namespace meshpost
