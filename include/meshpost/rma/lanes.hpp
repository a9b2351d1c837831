#pragma once
#include "meshpost/base/types.hpp"

// The inline protocol: a short message travels as packets that carry bytes and a flag in one store,
// so that the sender needs no fence. The receiver finds them while it waits, and unpacks them into
// the window: delivery is at consumption.
//
// A rank has `count` lanes, rings of `slots` messages in its own memory. A sender claims a lane of
// its target with the first message of a run, and owns it until the run ends: so nobody contends
// for places. Without a lane, without room in it, or for a longer message, the direct protocol is
// taken (rma/detail/put.hpp): no put ever waits for its receiver.

namespace meshpost {

/// Two words of a message, each with the message's number in the same 8-byte store. The number is
/// what tells a word that has come from one that was there before.
struct alignas(16) Packet {
  static constexpr u32 words = 2;
  u64 word[words];  ///< the message's word, and its number in the upper half
};

/// What a sender knows of one target. Its own, all 0 at the beginning of a run.
struct LaneOut {
  static constexpr u32 refused = ~u32{0};
  u32 lane;   ///< that it owns there + 1; 0: it has not asked yet
  u32 taken;  ///< messages that the lane had passed before this run
  u32 sent;   ///< in this run
};

/// Where the lanes of a World's ranks are. Offsets in the symmetric heap; each device has the
/// arrays of its own ranks.
struct Lanes {
  u32 count = 0;    ///< of each rank; 0: everything goes direct
  u32 slots = 0;    ///< messages that a lane holds
  u32 most = 0;     ///< bytes of the longest message
  u32 packets = 0;  ///< of a slot
  u64 rings = 0;    ///< Packet[local rank][lane][slot][packets]
  u64 taken = 0;    ///< u32[local rank][lane]: messages unpacked, in all runs
  // 0 at the beginning of a run:
  u64 claims = 0;   ///< u32[local rank]: lanes that were asked for
  u64 owners = 0;   ///< u64[local rank][lane]: sender + 1, and LaneOut::taken in the upper half
  u64 credits = 0;  ///< u32[local rank][world rank]: messages of this run that the latter unpacked
  u64 outs = 0;     ///< LaneOut[local rank][world rank]

  /// Words before a message's bytes: where they go, and which counter rises.
  static constexpr u32 header_words = 3;
  MESHPOST_FN static constexpr u32 words_for(u64 bytes) {
    return header_words + static_cast<u32>((bytes + 3) / 4);
  }
  MESHPOST_FN static constexpr u32 packets_for(u64 bytes) {
    return (words_for(bytes) + Packet::words - 1) / Packet::words;
  }
};

}  // namespace meshpost
