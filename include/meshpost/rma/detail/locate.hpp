#pragma once
#include "meshpost/rma/rank.hpp"

// Who and where: groups, members, windows, bounds.

namespace meshpost {

MESHPOST_FN inline Group Rank::group_of(Communicator const& communicator) const {
  u32 const each = state_->ranks_per_device;
  switch (communicator.shape) {
    case Communicator::Shape::world: return {0, id_, state_->ranks, each, state_->devices, 0, 0};
    case Communicator::Shape::device:
      return {state_->device, local_id_, each, each, 1, state_->device * each, state_->device};
    case Communicator::Shape::split: break;
  }
  return reinterpret_cast<Group const*>(on_device(state_->device, communicator.groups))[id_];
}

MESHPOST_FN inline u32 Rank::member_of(Communicator const& communicator, Group const& group, u32 index) const {
  if (communicator.shape != Communicator::Shape::split) return group.members + index;
  return reinterpret_cast<u32 const*>(on_device(state_->device, communicator.members))[group.members + index];
}

MESHPOST_FN inline u32 Rank::place_of(Communicator const& communicator, Group const& group, u32 index) const {
  if (communicator.shape != Communicator::Shape::split) return group.places + index;
  return reinterpret_cast<u32 const*>(on_device(state_->device, communicator.places))[group.places + index];
}

MESHPOST_FN inline u32 Rank::member(Operation operation, Communicator const& communicator, RankId rank) {
  if (communicator.world != state_->world) fail(operation, Fault::foreign_window, communicator.world, state_->world);
  if (communicator.shape == Communicator::Shape::world) {
    if (rank >= state_->ranks) fail(operation, Fault::target, rank, state_->ranks);
    return rank;
  }
  Group const group = group_of(communicator);
  if (group.size == 0) fail(operation, Fault::unreachable, communicator.number);
  if (rank >= group.size) fail(operation, Fault::target, rank, group.size);
  return member_of(communicator, group, rank);
}

MESHPOST_FN inline RankId Rank::id(Communicator const& communicator) const { return {group_of(communicator).index}; }
MESHPOST_FN inline u32 Rank::size(Communicator const& communicator) const { return group_of(communicator).size; }
MESHPOST_FN inline RankId Rank::world_rank(Communicator const& communicator, RankId rank) const {
  return {member_of(communicator, group_of(communicator), rank)};
}

MESHPOST_FN inline Rank::Location Rank::own(WindowInfo const& window) const {
  char* const base = on_device(state_->device, 0);
  Location location;
  location.rank = id_;
  location.near = true;
  location.counters =
      reinterpret_cast<u32*>(base + window.counters + static_cast<u64>(local_id_) * window.counter_pitch);
  location.data = base + window.offset + local_id_ * window.pitch;
  location.count = window.count;
  if (window.parts != 0) {
    Part const part = reinterpret_cast<Part const*>(base + window.parts)[id_];
    location.data = static_cast<char*>(part.data);
    location.count = part.count;
  }
  return location;
}

MESHPOST_FN inline Rank::Location Rank::locate(Operation operation, WindowInfo const& window, RankId rank) {
  if (window.world != state_->world) fail(operation, Fault::foreign_window, window.world, state_->world);
  Location location;
  location.rank = member(operation, window.communicator, rank);
  u32 const device = location.rank / state_->ranks_per_device;
  u32 const local = location.rank - device * state_->ranks_per_device;
  location.near = device == state_->device;
  char* const base = on_device(device, 0);
  location.counters = reinterpret_cast<u32*>(base + window.counters + static_cast<u64>(local) * window.counter_pitch);
  location.data = base + window.offset + local * window.pitch;
  location.count = window.count;
  if (window.parts != 0) {  // every device has its own copy of the table
    Part const part = reinterpret_cast<Part const*>(on_device(state_->device, window.parts))[location.rank];
    location.data = static_cast<char*>(part.data);
    location.count = part.count;
  }
  return location;
}

MESHPOST_FN inline void Rank::check_tag(Operation operation, WindowInfo const& window, Tag tag) {
  if (tag.value >= window.tags) fail(operation, Fault::tag, tag.value, window.tags);
}

MESHPOST_FN inline void Rank::check_range(Operation operation, u64 offset, u64 count, u64 limit) {
  if (offset > limit || count > limit - offset) fail(operation, Fault::range, offset, count, limit);
}

template <class T>
MESHPOST_FN void Rank::check_source(Operation operation, LocalSpan<T> span) {
  if (!span.valid()) fail(operation, Fault::span);
  if (span.size() != 0 && !span.data()) fail(operation, Fault::null_pointer, span.size());
}

template <class T>
MESHPOST_FN LocalSpan<T> Window<T>::local(Rank const& self) const {
  auto const own = self.own(info_);
  return {reinterpret_cast<T*>(own.data), own.count};
}

}  // namespace meshpost
