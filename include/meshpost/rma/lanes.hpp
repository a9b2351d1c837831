#pragma once
#include "meshpost/base/types.hpp"

// The inline protocol: a short message travels as packets that carry bytes and a flag in one store.
// So the sender needs no fence. The receiver finds them while it waits, and unpacks them into the
// window: delivery is at consumption.
//
// A rank has `count` lanes, rings of packets in its own memory. A sender claims a lane of its
// target with the first message of a run, and owns it until the run ends. So no two senders contend
// for places. A longer message goes direct (rma/detail/via/direct/write.hpp), and its notification
// by the lane. Without a lane, or without room in it, everything goes direct: no put ever waits for
// its receiver.

namespace meshpost {

/// One place of a lane, stored as its machine can (memory::store_packet).
struct alignas(16) Packet {
  u32 word[4];
};

/// The state that a sender keeps for one target. All 0 at the beginning of a run.
struct alignas(16) LaneOut {
  static constexpr u32 refused = ~u32{0};
  u32 lane;   ///< that it owns there, + 1; 0: not yet requested
  u32 begin;  ///< packets that had passed the lane before this run
  u32 sent;   ///< packets, in this run
  u32 known;  ///< of them, those known to be unpacked
};

/// The lane that a rank used last. All of its threads hold the same.
struct LaneHold {
  Packet* ring = nullptr;  ///< null: there is none
  u32 target = 0;          ///< rank + 1; 0: none
  u32 next = 0;            ///< place of the next packet
  u32 end = 0;             ///< there is room before this one

  MESHPOST_FN bool has_room(u32 target_rank, u32 packets) const {
    return target == target_rank + 1 && end - next >= packets;
  }
};

/// Where the lanes of a World's ranks are. Offsets in the symmetric heap; each device has the
/// arrays of its own ranks.
struct Lanes {
  u32 count = 0;  ///< of each rank; 0: everything goes direct
  u32 shift = 0;  ///< a lane has 2^shift packets
  u32 most = 0;   ///< bytes of the longest message
  u64 rings = 0;  ///< Packet[local rank][lane][2^shift]
  u64 taken = 0;  ///< u32[local rank][lane]: packets unpacked, in all runs
  // 0 at the beginning of a run; each rank clears its own (clear_lanes):
  u64 claims = 0;   ///< u32[local rank]: lanes requested
  u64 owners = 0;   ///< u64[local rank][lane]: sender + 1, and LaneOut::begin in the upper half
  u64 credits = 0;  ///< u32[local rank][world rank]: packets of this run unpacked by the world rank
  u64 outs = 0;     ///< LaneOut[local rank][world rank]

  /// Words before a message's bytes: the target's place, and the counter to raise.
  static constexpr u32 header_words = 3;

  MESHPOST_FN u32 packets() const { return 1u << shift; }
  /// The place of a packet in its lane.
  MESHPOST_FN static u32 index(u32 position, u32 shift) { return position & ((1u << shift) - 1); }
  /// Distinguishes a packet from earlier ones in its place: a value for each lap, never 0.
  MESHPOST_FN static u32 flag(u32 position, u32 shift) { return (position >> shift) + 1; }
};

}  // namespace meshpost
