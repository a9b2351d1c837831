#pragma once
#include "meshpost/rma/detail/left_counts.hpp"
#include "meshpost/rma/run_state.hpp"

// clang-format off
// A lane and its two ends. write.hpp: how messages get into lanes; read.hpp: out of them.
// Reuse: point 3 for a place in the ring. For another sender, refresh() in write.hpp claims a lane,
// and clear_lanes() in read.hpp frees it.
//
// Why the receiver gets what was sent:
//  1. A word and its message's flag are one store, and one load (memory::store_packet). So a word
//     that is found with the awaited flag is that message's, even if other words have not come.
//  2. Flags count laps. A message takes an even number of packets, and all of them are stored. So
//     each place is stored once a lap, and its content has this lap's flag or the last one's.
//  3. A place is stored again only after the sender was told that its message is unpacked
//     (credits). That needs no fence. The credit is stored because loads have returned this
//     message's flags. The next message is stored because the credit was loaded. So those loads
//     can't return what that store wrote.
//  4. A run that fails leaves messages half written or not unpacked. The host then advances each
//     lane by a lap.
//
// Why first in, first out holds for a pair of ranks across both protocols, and why the bytes of a
// message are there when a notification is consumed:
//  5. By lane after by lane: a lane's messages are unpacked in their order. Of each, the bytes are
//     stored before its count.
//  6. By lane after anything else that it must deliver with it (bytes, a word or a count that went
//     direct, or what was published): the thread that stores the message's header fences before. It
//     need not if it has fenced since, for a message to another rank. The header says so
//     (acquires), and the thread that finds it acquires before it unpacks. The release is by thread
//     0, the acquire by a thread of warp 0. The sender's other threads meet thread 0 before the
//     release. The receiver's other threads of the warp meet the acquiring thread before they
//     unpack, and all its other threads behind that. A barrier of the world brings all that was
//     before it.
//  7. Direct after by lane: a rank that has seen a direct count reads all its lanes once more
//     before it returns. The lane's packets were stored before the fence of that count, so they are
//     found there. Such a count is fenced even if nothing else went direct (Sender::may_have_lane).
//     On GPUs a rank sends nothing by lane to ranks of its own device, and raises separate words
//     there (WindowInfo::near_counts). Such counts need no second read of the lanes. A word
//     (put_value) is never sent by lane, and is ordered as a direct count is. Its store is fenced
//     if its sender may have a lane there, and wait_until reads all lanes once it has seen the
//     word. So a rank that neither puts words nor polls them pays nothing. Bytes that went direct
//     may lie in the window before those of an earlier message that is still in its lane. They
//     can't be the same bytes: a put over bytes that the same rank has announced is against the
//     rule of delivery.
//
// herd7 can check all of this against a model of PTX's memory, and against RC11 for CPU devices
// (tests/litmus). It checks each order, and that the order fails without its fence, flag or
// acquire. The arithmetic of positions and flags is not checked there. Replies that are not fenced
// are open.
//
// A rank polls the lanes that it knows to be claimed, and loads the number of claims with each
// poll. So the first message of a lane is found one poll later. In 7, it polls all lanes.
//
// The receiver itself stores what it unpacks, in its own memory. Ranks of its device see it behind
// its next notification, as they see its plain stores. Ranks of other devices that `get` it see it
// behind publish() or a barrier.
// clang-format on

namespace meshpost {
namespace detail {

/// One rank's lanes, by way of its device's part of the heap.
class LaneEnd {
 public:
  MESHPOST_FN LaneEnd(RunState const& state, u32 rank)
      : lanes_(state.lanes), rank_(rank), ranks_(state.ranks) {
    u32 const device = state.device_of(rank);
    device_ = state.heap + device * state.stride;
    local_ = rank - device * state.ranks_per_device;
  }

  MESHPOST_FN u32 rank() const { return rank_; }
  MESHPOST_FN char* device() const { return device_; }
  MESHPOST_FN u32* claims() const {
    return reinterpret_cast<u32*>(device_ + lanes_.claims) + local_;
  }
  MESHPOST_FN u32* taken(u32 lane) const {
    return reinterpret_cast<u32*>(device_ + lanes_.taken) + local_ * lanes_.count + lane;
  }
  MESHPOST_FN u64* owner(u32 lane) const {
    return reinterpret_cast<u64*>(device_ + lanes_.owners) + local_ * lanes_.count + lane;
  }
  MESHPOST_FN u32* credit(u32 of) const {
    return reinterpret_cast<u32*>(device_ + lanes_.credits) + u64{local_} * ranks_ + of;
  }
  MESHPOST_FN LaneOut& out(u32 target) const {
    return reinterpret_cast<LaneOut*>(device_ + lanes_.outs)[u64{local_} * ranks_ + target];
  }
  /// The first place of a lane; Lanes::index() numbers the places.
  MESHPOST_FN Packet* ring(u32 lane) const {
    u64 const number = u64{local_} * lanes_.count + lane;
    return reinterpret_cast<Packet*>(device_ + lanes_.rings) + (number << lanes_.shift);
  }

 private:
  Lanes const& lanes_;
  char* device_;
  u32 rank_, local_, ranks_;
};

/// The words before a message's bytes.
struct LaneHeader {
  u64 offset = 0;   ///< of the target, on its device
  u64 counter = 0;  ///< the same, in words
  u32 bytes = 0;
  u32 senders = 0;        ///< from the counter to the word for its raiser, in lines
  bool acquires = false;  ///< the finder must acquire: it brings more than its bytes

  static constexpr u32 line = 64, most_bytes = 0x1fff, most_senders = 63;
  static constexpr u64 most_heap = u64{1} << 39;  ///< bytes of a device's part

  MESHPOST_FN u32 word(u32 i) const {
    if (i == 0) return static_cast<u32>(offset);
    if (i == 1) return static_cast<u32>(counter);
    return bytes | static_cast<u32>(offset >> 32) << 13 | static_cast<u32>(counter >> 32) << 20 |
           senders << 25 | static_cast<u32>(acquires) << 31;
  }
  MESHPOST_FN static LaneHeader from(u32 a, u32 b, u32 c) {
    return {.offset = a | static_cast<u64>(c >> 13 & 0x7f) << 32,
            .counter = b | static_cast<u64>(c >> 20 & 0x1f) << 32,
            .bytes = c & most_bytes,
            .senders = c >> 25 & 0x3f,
            .acquires = c >> 31 != 0};
  }
  /// The word for the counter's last raiser.
  MESHPOST_FN u32* sender_of(u32* counter_word) const {
    return counter_word + senders * (line / sizeof(u32));
  }
  MESHPOST_FN u32 words() const { return Lanes::header_words + (bytes + 3) / 4; }
  /// All packets of the message: an even number.
  MESHPOST_FN u32 packets() const {
    u32 const used = (words() + memory::packet_words - 1) / memory::packet_words;
    return used + used % 2;
  }
  /// Bytes [at, at + 4) of those at `source`, those that exist.
  MESHPOST_FN u32 word_of(void const* source, u32 at) const {
    auto const* const from = static_cast<u8 const*>(source) + at;
    if ((bytes | reinterpret_cast<u64>(source)) % 4 != 0) return gather(from, at, bytes);
    return at < bytes ? *reinterpret_cast<u32 const*>(from) : 0;
  }
  /// The reverse of word_of().
  MESHPOST_FN void put_word(void* target, u32 at, u32 word) const {
    auto* const to = static_cast<u8*>(target) + at;
    if ((bytes | reinterpret_cast<u64>(target)) % 4 != 0) scatter(word, to, at, bytes);
    else if (at < bytes) *reinterpret_cast<u32*>(to) = word;
  }

 private:
  MESHPOST_COLD static u32 gather(u8 const* from, u32 at, u32 bytes) {
    u32 word = 0;
    for (u32 i = 0; i < 4 && at + i < bytes; ++i) word |= static_cast<u32>(from[i]) << 8 * i;
    return word;
  }
  MESHPOST_COLD static void scatter(u32 word, u8* to, u32 at, u32 bytes) {
    for (u32 i = 0; i < 4 && at + i < bytes; ++i) to[i] = static_cast<u8>(word >> 8 * i);
  }
};

#if defined(__CUDA_ARCH__)

/// The state that a rank on a GPU keeps of its lanes, at both ends. In shared memory: an acquire
/// drops what the block has cached of other memory, and out-of-line functions can't have it in
/// registers.
struct LaneCache {
  static constexpr u32 lanes = 32, targets = 32, guesses = 16;
  /// The expected form of the next message for a counter: that of the last one.
  struct alignas(16) Guess {
    u32 b, c;  ///< LaneHeader::word, except the target's place
    u32 lane;
    static constexpr u32 near = 0xfe;  ///< from a rank of this device
    static constexpr u32 unknown = 0xff;
  };
  // Of the run:
  RunState const* state;
  char* device;         ///< this rank's device's part of the heap
  Packet const* rings;  ///< its first lane
  u32* positions;       ///< LaneEnd::taken of its first lane
  u32 const* claims;    ///< LaneEnd::claims
  u32 rank, count, shift;
  bool ends;   ///< the run ends: see drain_lanes()
  bool noted;  ///< counts, since the run ends
  bool asks;   ///< this rank has requested lanes of others
  // As receiver:
  u32 claimed;             ///< lanes known to be claimed
  u32 taken[lanes];        ///< as LaneEnd::taken
  u32 told[lanes];         ///< value stored in LaneEnd::taken
  u32 returned[lanes];     ///< value that the sender was told
  u64 owners[lanes];       ///< 0: not known yet
  Guess guessed[guesses];  ///< by counter
  // The form of the last message of all:
  u32 last;   ///< lane
  u32 ahead;  ///< loads of a warp for its packets behind the first two
  // As sender, of some targets:
  u32 targets_of[targets];  ///< rank + 1; 0: none
  LaneOut outs[targets];
  LaneHold held;  ///< the last one requested

  /// By every thread of warp 0.
  __device__ void start(RunState const& run, u32 id, u32 thread) {
    LaneEnd const mine(run, id);
    taken[thread] = thread < run.lanes.count ? *mine.taken(thread) : 0;
    told[thread] = returned[thread] = taken[thread];
    if (thread < guesses) guessed[thread].lane = Guess::unknown;
    owners[thread] = 0;
    targets_of[thread] = 0;
    if (thread != 0) return;
    state = &run;
    device = mine.device();
    rings = mine.ring(0);
    positions = mine.taken(0);
    claims = mine.claims();
    claimed = 0;
    rank = id;
    ends = noted = asks = false;
    count = run.lanes.count;
    shift = run.lanes.shift;
    last = ahead = 0;
  }
  __device__ Guess& guess_of(u32* counter) {
    return guessed[reinterpret_cast<u64>(counter) / sizeof(u32) % guesses];
  }
  /// By thread 0, as are all stores to `guessed` behind start(): several lanes' messages may be for
  /// one counter. Not for messages for which poll_fast() has no loads.
  __device__ void remember(u32* counter, Guess const& guess, LaneHeader const& header) {
    bool const plain = header.bytes % 4 == 0 && header.bytes <= 12 * 97;
    guess_of(counter) = {guess.b, guess.c, plain ? guess.lane : Guess::unknown};
  }
  /// Stores the position of the lane's thread, for a later run and for the sender. It does not
  /// delay a message: it is called before the next one is awaited.
  __device__ void tell(u32 lane) {
    u32 const now = taken[lane];
    if (now == told[lane]) return;
    told[lane] = now;
    memory::store_relaxed(positions + lane, now);
    if (now - returned[lane] >= (1u << shift) / 4 && !ends) give_back(lane);
  }
  /// For messages that were not awaited; by one thread.
  __device__ void raise(u32* counter, u32 by) {
    if (!ends) return memory::add(counter, by, Order::none);
    note_left(*state, counter, by);
    noted = true;
  }
  /// The sender that owns a lane. By the lane's thread, like give_back().
  __device__ __noinline__ u64 owner_of(u32 lane) {
    memory::acquire_fence();  // the packet alone may not order the owner's word (refresh)
    return owners[lane] = memory::load_bits_acquire(LaneEnd(*state, rank).owner(lane), sizeof(u64));
  }
  /// Tells the sender how much was unpacked.
  __device__ __noinline__ void give_back(u32 lane) {
    if (owners[lane] == 0) owner_of(lane);
    returned[lane] = taken[lane];
    u32 const sender = static_cast<u32>(owners[lane]) - 1, begin = owners[lane] >> 32;
    memory::store_relaxed(LaneEnd(*state, sender).credit(rank), taken[lane] - begin);
  }
  /// The state for a target's lane; by one thread.
  __device__ LaneOut& out(u32 target) {
    u32 const i = target % targets;
    if (targets_of[i] == target + 1) return outs[i];
    LaneEnd const here(*state, rank);
    if (targets_of[i] != 0) here.out(targets_of[i] - 1) = outs[i];
    targets_of[i] = target + 1;
    asks = true;
    return outs[i] = here.out(target);
  }
};

__device__ inline LaneCache& lane_cache() {
  __shared__ LaneCache cache;
  return cache;
}

#endif

}  // namespace detail
}  // namespace meshpost
