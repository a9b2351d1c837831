#include "rma/lanes.hpp"

#include "meshpost/rma/rank.hpp"

namespace meshpost::detail {
namespace {

// Of the state's device, if it has lanes.
template <class Visit>
void each_rank(RunState const& state, Visit&& visit) {
  if (state.lanes.count == 0) return;
  for (u32 local = 0; local < state.ranks_per_device; ++local)
    visit(state.device * state.ranks_per_device + local);
}

}  // namespace

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

void LaneKeeper::unpack(RunState const& state) {
  each_rank(state, [&](u32 rank) { take_from_lanes(state, rank); });
}

void LaneKeeper::skip(RunState const& state) {
  each_rank(state, [&](u32 rank) {
    for (u32 lane = 0; lane < state.lanes.count; ++lane)
      *LaneEnd(state, rank).taken(lane) += state.lanes.slots;
  });
}

}  // namespace meshpost::detail
