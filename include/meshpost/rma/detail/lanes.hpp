#pragma once
#include "meshpost/rma/rank.hpp"

// How messages get into lanes and out of them. By one thread of the rank, which all others meet
// before and after.
//
// Why the receiver gets what was sent:
//  1. A word and its message's number are one 8-byte store, and one load. So a word that is found
//  with the awaited number is that message's, whatever else has come or not.
//  2. Numbers of a lane count up, through all runs. A slot's words hold numbers of earlier laps;
//  one that long messages alone reach may be many laps old. In one lap of each 2^20 every word of
//  the slot is stored, so none is 2^32 messages old, and none is mistaken for a new one.
//  3. A slot is written again only when its message's unpacking was told (credits): the store of a
//  credit comes behind the loads of the slot (release), and its load before the stores of the next
//  message (acquire).
//  4. A run that fails leaves messages half written or not unpacked: the host then lets each lane's
//  number step over all that its slots may hold.
//
// Why first in, first out holds for a pair of ranks across both protocols, and what a message
// brings is there when a notification is consumed:
//  5. By lane after by lane: a lane's messages are unpacked in the order of their numbers. Of each,
//     the bytes are stored before its counter rises.
//  6. By lane after direct: the flags are stored with release after the direct message's bytes and
//     count, and loaded with acquire. (On a GPU this would take the fence that lanes are to save:
//     a message then says whether anything went direct since the one before.)
//  7. Direct after by lane: who has seen a count looks through its lanes once more before it
//     returns (Rank::wait). The lane's words were stored before that count was raised, so they are
//     found there.
//  Bytes that went direct may lie in the window before those of an earlier message that is still
//  in its lane. They can't be the same bytes: a put over bytes that the same rank has announced is
//  against the rule of delivery.
//
// A plain put stays direct, and so does the notification behind it (unfenced_): it carries the
// fence.

namespace meshpost {
namespace detail {

/// One rank's lanes, by way of its device's part of the heap.
class LaneEnd {
 public:
  MESHPOST_FN LaneEnd(RunState const& state, u32 rank) : lanes_(state.lanes), ranks_(state.ranks) {
    u32 const device = state.device_of(rank);
    device_ = state.heap + device * state.stride;
    local_ = rank - device * state.ranks_per_device;
  }

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
  MESHPOST_FN Packet* slot(u32 lane, u32 number) const {
    u64 const ring = u64{local_} * lanes_.count + lane;
    return reinterpret_cast<Packet*>(device_ + lanes_.rings) +
           (ring * lanes_.slots + number % lanes_.slots) * lanes_.packets;
  }

 private:
  Lanes const& lanes_;
  char* device_;
  u32 local_, ranks_;
};

/// What stands before a message's bytes.
struct LaneHeader {
  u64 offset = 0;   ///< of the target, on its device
  u64 counter = 0;  ///< the same, in words
  u32 bytes = 0;
  u32 senders = 0;  ///< from the counter to the word that names who raised it, in lines

  static constexpr u32 line = 64;

  /// Whether it has room for these numbers.
  MESHPOST_FN bool fits() const {
    return offset < u64{1} << 40 && counter < u64{1} << 38 && senders < 64;
  }

  MESHPOST_FN u32 word(u32 i) const {
    if (i == 0) return static_cast<u32>(offset);
    if (i == 1) return static_cast<u32>(counter);
    return bytes | static_cast<u32>(offset >> 32) << 12 | static_cast<u32>(counter >> 32) << 20 |
           senders << 26;
  }
  MESHPOST_FN static LaneHeader from(u32 a, u32 b, u32 c) {
    return {a | static_cast<u64>(c >> 12 & 0xff) << 32, b | static_cast<u64>(c >> 20 & 0x3f) << 32,
            c & 0xfff, c >> 26};
  }
};

MESHPOST_FN inline bool claim_lane(Lanes const& lanes, LaneEnd const& there, u32 sender,
                                   LaneOut& out) {
  u32 const lane = memory::fetch_add_device(there.claims(), 1);
  if (lane >= lanes.count) {
    out.lane = LaneOut::refused;
    return false;
  }
  out.taken = memory::load_acquire(there.taken(lane));  // nobody changes it: all was unpacked
  out.lane = lane + 1;
  memory::store(there.owner(lane), (u64{sender} + 1) | static_cast<u64>(out.taken) << 32,
                Order::system);
  return true;
}

/// Whether the message went. `sender` is on the state's device.
MESHPOST_FN inline bool send_by_lane(RunState const& state, u32 sender, u32 target,
                                     LaneHeader const& header, void const* source) {
  Lanes const& lanes = state.lanes;
  LaneEnd const here(state, sender), there(state, target);
  LaneOut& out = here.out(target);
  if (out.lane == LaneOut::refused) return false;
  if (out.lane == 0 && !claim_lane(lanes, there, sender, out)) return false;
  if (out.sent - memory::load_acquire(here.credit(target)) >= lanes.slots) return false;
  u32 const number = out.taken + ++out.sent;
  Packet* const slot = there.slot(out.lane - 1, number);
  u64 const flag = u64{number} << 32;
  u32 const words = Lanes::words_for(header.bytes);
  bool const renew = (number / lanes.slots) % (1u << 20) == 0;
  u32 const all = renew ? lanes.packets * Packet::words : words;
  for (u32 i = 0; i < all; ++i) {
    u32 word = 0;
    if (i < Lanes::header_words) {
      word = header.word(i);
    } else if (i < words) {
      u32 const at = (i - Lanes::header_words) * 4;
      u32 const left = header.bytes - at;
      memory::copy(&word, static_cast<char const*>(source) + at, left < 4 ? left : 4, 0, 1);
    }
    memory::store(&slot[i / Packet::words].word[i % Packet::words], flag | word, Order::none);
  }
  return true;
}

/// Unpacks a lane's next message, if all of it is there.
MESHPOST_FN inline bool take_from_lane(RunState const& state, u32 rank, u32 lane) {
  LaneEnd const mine(state, rank);
  u32 const number = memory::load_relaxed(mine.taken(lane)) + 1;
  Packet const* const slot = mine.slot(lane, number);
  bool whole = true;
  auto const word = [&](u32 i) {
    u64 const bits =
        memory::load_bits_acquire(&slot[i / Packet::words].word[i % Packet::words], sizeof(u64));
    whole &= static_cast<u32>(bits >> 32) == number;
    return static_cast<u32>(bits);
  };
  auto const header = LaneHeader::from(word(0), word(1), word(2));
  if (!whole) return false;
  u32 const words = Lanes::words_for(header.bytes);
  for (u32 i = Lanes::header_words; i < words; ++i) word(i);
  if (!whole) return false;
  for (u32 i = Lanes::header_words; i < words; ++i) {
    u32 const bits = word(i), at = (i - Lanes::header_words) * 4, left = header.bytes - at;
    memory::copy(mine.device() + header.offset + at, &bits, left < 4 ? left : 4, 0, 1);
  }
  u64 const owner = memory::load_bits_acquire(mine.owner(lane), sizeof(u64));
  u32 const sender = static_cast<u32>(owner) - 1, before = static_cast<u32>(owner >> 32);
  u32* const counter = reinterpret_cast<u32*>(mine.device()) + header.counter;
  memory::add(counter, 1, Order::none);
  memory::store_relaxed(counter + header.senders * (LaneHeader::line / sizeof(u32)), sender + 1);
  memory::store(mine.taken(lane), number, Order::none);
  memory::store(LaneEnd(state, sender).credit(rank), number - before, Order::system);
  return true;
}

MESHPOST_FN inline u32 claimed_lanes(RunState const& state, LaneEnd const& mine) {
  u32 const claims = memory::load_acquire(mine.claims());
  return claims < state.lanes.count ? claims : state.lanes.count;
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
    u32 const number = memory::load_acquire(mine.taken(lane)) + 1;
    u64 const first = memory::load_bits_acquire(mine.slot(lane, number), sizeof(u64));
    if (static_cast<u32>(first >> 32) == number) return true;
  }
  return false;
}

}  // namespace detail

MESHPOST_FN inline bool Rank::uses_lanes() const {
#if defined(__CUDA_ARCH__)
  return false;  // CPU devices only, so far
#else
  return state_->lanes.count != 0;
#endif
}

/// Whether the message went by a lane; by all threads.
MESHPOST_FN inline bool Rank::move_by_lane(Location const& to, void* target, void const* source,
                                           u64 bytes, Location const& counters, Tag tag) {
  if (!uses_lanes() || to.far || unfenced_ || bytes > state_->lanes.most) return false;
  char* const there = on_device(state_->device_of(to.rank), 0);
  u64 const offset = bytes == 0 ? 0 : static_cast<u64>(static_cast<char*>(target) - there);
  u64 const word = static_cast<u64>(counters.counters + tag.value - reinterpret_cast<u32*>(there));
  u32 const senders = counters.counter_pitch / (2 * detail::LaneHeader::line);
  // Not memory that is no part of the heap, and not what the header can't name.
  if (offset >= stride_ || word >= stride_ / sizeof(u32)) return false;
  detail::LaneHeader const header{offset, word, static_cast<u32>(bytes), senders};
  if (!header.fits()) return false;
  block_.sync();
  bool sent = false;
  if (thread() == 0)
    sent = !block_.step(hooks::Step::lane_send) ||
           detail::send_by_lane(*state_, id_, to.rank, header, source);
  return block_.any(sent);
}

/// All that has come by lane; by all threads.
MESHPOST_FN inline void Rank::take_lanes() {
  if (!uses_lanes()) return;
  if (thread() == 0 && block_.step(hooks::Step::lane_take)) detail::take_from_lanes(*state_, id_);
  block_.sync();
}

}  // namespace meshpost
