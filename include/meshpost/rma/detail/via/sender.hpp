#pragma once
#include "meshpost/rma/run_state.hpp"

namespace meshpost::via {

/// A rank's part of a window, as another rank reaches it.
struct Location {
  char* heap = nullptr;  ///< its device's part
  char* data = nullptr;
  u32* counters = nullptr;
  u64 count = 0;  ///< elements
  u32 rank = 0;   ///< in the world
  u32 tags = 0;
  u32 counter_part = 0;
  bool near = false;  ///< on the device of the sender
  bool far = false;   ///< out of the sender's reach of loads and stores

  MESHPOST_FN u32* beside(u32* counter, WindowInfo::CounterArray array) const {
    return WindowInfo::beside(counter, counter_part, array);
  }
};

/// The state of a rank that the ways to other ranks need. `zero_` is 0, which the compiler can't
/// know (Rank says why it is added).
struct Sender {
  MESHPOST_FN Sender(RunState const& state, Block block, u32 local_rank, bool lanes)
      : state_(&state),
        block_(block),
        local_id_(local_rank),
        id_(state.device * state.ranks_per_device + local_rank),
        zero_(block.thread() & state.zero),
        lane_limit_(lanes ? (state.lanes.count != 0 ? state.lanes.most + 1 : 0) + zero_ : 0),
        stride_(state.stride + zero_) {}

  MESHPOST_FN u32 thread() const { return block_.thread(); }
  MESHPOST_FN u32 threads() const { return block_.threads(); }
  MESHPOST_FN bool uses_lanes() const { return lane_limit_ != 0; }
  /// False: everything that this rank sends there goes direct.
  MESHPOST_FN bool may_have_lane(u32 target) const {
    return uses_lanes() && (lane_.target != target + 1 || lane_.ring);
  }
  MESHPOST_FN void stored_at(Location const& to) {
    if (!to.near) unfenced_ = brings_ = true;
  }
  /// The fence that a count or a word needs before it.
  MESHPOST_FN Order order_to(Location const& to) const {
    return to.near                               ? Order::device
           : unfenced_ || may_have_lane(to.rank) ? Order::system
                                                 : Order::none;
  }

  // Members of Rank, which derives from this: named as those of a class.
  // NOLINTBEGIN(readability-identifier-naming)
  RunState const* state_;
  Block block_;
  u32 local_id_, id_;
  u32 zero_;
  u32 lane_limit_;  ///< shorter messages may go by lane; 0: none
  u64 stride_;
  u32 posted_ = 0;         ///< requests to the proxy that it answers
  LaneHold lane_{};        ///< the lane that it last sent by
  bool unfenced_ = false;  ///< it has stored beyond its device since its last system fence
  /// It has stored so since the last barrier of the world, or published: the finder of its messages
  /// acquires.
  bool brings_ = false;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace meshpost::via
