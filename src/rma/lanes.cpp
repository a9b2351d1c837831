#include "rma/lanes.hpp"

#include "meshpost/rma/rank.hpp"

namespace meshpost::detail {

LaneKeeper::LaneKeeper(u32 lanes, Layout const& layout, Heap& heap) {
  if (lanes == 0) return;
  u64 const here = layout.ranks_per_device, world = layout.ranks();
  auto const data = [&](u64 bytes) {
    size_ = Bytes{size_ + bytes};
    return heap.allocate(bytes);
  };
  auto const cleared = [&](u64 bytes) {
    size_ = Bytes{size_ + bytes};
    return heap.allocate_counters(bytes);
  };
  lanes_ = {lanes, slots, most, Lanes::packets_for(most)};
  lanes_.rings = data(here * lanes * slots * lanes_.packets * sizeof(Packet));
  lanes_.taken = data(here * lanes * sizeof(u32));
  lanes_.claims = cleared(here * sizeof(u32));
  lanes_.owners = cleared(here * lanes * sizeof(u64));
  lanes_.credits = cleared(here * world * sizeof(u32));
  lanes_.outs = cleared(here * world * sizeof(LaneOut));
}

void LaneKeeper::unpack(RunState const& state) const {
  if (state.lanes.count == 0) return;
  for (u32 rank = 0; rank < state.ranks_per_device; ++rank) take_from_lanes(state, rank);
}

void LaneKeeper::skip(RunState const& state) const {
  if (state.lanes.count == 0) return;  // it never began
  for (u32 rank = 0; rank < state.ranks_per_device; ++rank)
    for (u32 lane = 0; lane < lanes_.count; ++lane)
      *own_lanes(state, rank).taken(lane) += lanes_.slots;
}

}  // namespace meshpost::detail
