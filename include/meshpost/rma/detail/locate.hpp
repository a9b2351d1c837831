#pragma once
#include "meshpost/rma/detail/via/choose.hpp"
#include "meshpost/rma/rank.hpp"

// Groups, members, windows, bounds.

namespace meshpost {

MESHPOST_FN inline Group Rank::group_of(Communicator const& communicator) const {
  u32 const each = state_->ranks_per_device;
  switch (communicator.shape) {
    case Communicator::Shape::world:
      return {0, id_, ranks_, each, state_->devices, 0, 0, device_ * each, device_};
    case Communicator::Shape::device:
      return {device_, local_id_, each, each, 1, device_ * each, device_, 0, 0};
    case Communicator::Shape::split: break;
  }
  return reinterpret_cast<Group const*>(on_device(state_->device, communicator.groups))[id_];
}

MESHPOST_FN inline u32 Rank::member_of(Communicator const& communicator, Group const& group,
                                       u32 index) const {
  if (communicator.shape != Communicator::Shape::split) return group.members + index;
  return reinterpret_cast<u32 const*>(
      on_device(state_->device, communicator.members))[group.members + index];
}

MESHPOST_FN inline u32 Rank::place_of(Communicator const& communicator, Group const& group,
                                      u32 index) const {
  if (communicator.shape != Communicator::Shape::split) return group.places + index;
  return reinterpret_cast<u32 const*>(
      on_device(state_->device, communicator.places))[group.places + index];
}

MESHPOST_FN inline u32 Rank::member(Subject subject, Communicator const& communicator,
                                    RankId rank) {
  Group const group = joined_group(subject, communicator);
  if (rank >= group.size) fail(subject, Fault::target, rank, group.size);
  return member_of(communicator, group, rank);
}

/// This rank's group; of size 0 if it is in none. Any thread may call it alone.
MESHPOST_FN inline Group Rank::checked_group(Operation operation,
                                             Communicator const& communicator) const {
  if (communicator.world != world_) [[unlikely]]  // its tables are then in another heap
    block_.fail_alone(operation, Fault::foreign_window, communicator.world, world_);
  return group_of(communicator);
}
MESHPOST_FN inline RankId Rank::id(Communicator const& communicator) const {
  Group const group = checked_group(Operation::id, communicator);
  return {group.size == 0 ? Note::no_rank : group.index};
}
MESHPOST_FN inline u32 Rank::size(Communicator const& communicator) const {
  return checked_group(Operation::size, communicator).size;
}
MESHPOST_FN inline RankId Rank::world_rank(Communicator const& communicator, RankId rank) const {
  constexpr auto operation = Operation::world_rank;
  Group const group = checked_group(operation, communicator);
  if (group.size == 0) block_.fail_alone(operation, Fault::unreachable, communicator.number);
  if (rank >= group.size) block_.fail_alone(operation, Fault::target, rank, group.size);
  return {member_of(communicator, group, rank)};
}

/// The group that takes part in an operation.
MESHPOST_FN inline Group Rank::joined_group(Subject subject, Communicator const& communicator) {
  if (communicator.world != world_)
    fail(subject, Fault::foreign_window, communicator.world, world_);
  Group const group = group_of(communicator);
  if (group.size == 0) fail(subject, Fault::unreachable, communicator.number);
  return group;
}

MESHPOST_FN inline via::Location Rank::own(WindowInfo const& window) const {
  return locate_part(window, id_);
}

MESHPOST_FN inline via::Location Rank::locate(Operation operation, WindowInfo const& window,
                                              RankId rank) {
  if (window.whole_world != world_ || rank >= ranks_ || may_be_freed(window)) [[unlikely]]
    return locate_any(*state_, block_, id_, operation, window, rank);
  return locate_part(window, rank);
}

MESHPOST_FN inline via::Location Rank::locate_part(WindowInfo const& window, u32 rank) const {
  Location location = locate_uniform(window, rank);
  if (window.parts != 0) {  // every device has a copy of the table
    Part const part = reinterpret_cast<Part const*>(on_device(state_->device, window.parts))[rank];
    location.data = static_cast<char*>(part.data);
    location.count = part.count;
  }
  return location;
}

MESHPOST_FN inline via::Location Rank::locate_uniform(WindowInfo const& window, u32 rank) const {
  u32 const device =
      static_cast<u32>(((rank + zero_) * reciprocal_) >> 32);  // as RunState::device_of
  u32 const local = rank - device * ranks_per_device_;
  char* const base = heap_ + device * stride_;
  Location location;
  location.heap = base;
  location.rank = rank;
  location.near = device == device_;
  location.far = via::is_far(*state_, device);
  location.tags = window.tags + zero_;
  location.counter_part = window.counter_part + zero_;
  location.counters = reinterpret_cast<u32*>(
      base + (window.counters + zero_) +
      static_cast<u64>(local) * (WindowInfo::counter_arrays * location.counter_part));
  location.data = base + (window.offset + zero_) + local * (window.pitch + zero_);
  location.count = window.count + zero_;
  return location;
}

// For windows over splits, and for errors. Out of line, and not a member: a member would force the
// Rank out of its registers. For the same reason it takes a copy of the window, which may be a part
// of something larger in registers.
MESHPOST_COLD inline via::Location Rank::locate_any(RunState const& state, Block block, u32 id,
                                                    Operation operation, WindowInfo window,
                                                    RankId rank) {
  Rank self(state, block, id - state.device * state.ranks_per_device, nullptr);
  self.check_window(operation, window);
  return self.locate_part(
      window, self.member(Subject(operation, window.number), window.communicator, rank));
}

/// The handle of a freed window names memory that another window may have by now.
MESHPOST_FN inline void Rank::check_window(Operation operation, WindowInfo const& window) {
  if (window.world != world_) [[unlikely]]
    fail(operation, Fault::foreign_window, window.world, world_);
  if (may_be_freed(window)) [[unlikely]]
    if (state_->freed.contains(window.number)) fail(operation, Fault::freed_window, window.number);
}

MESHPOST_FN inline void Rank::check_tag(Subject subject, u32 tags, Tag tag) {
  if (tag.value >= tags) [[unlikely]]
    fail(subject, Fault::tag, tag.value, tags);
}

MESHPOST_FN inline void Rank::check_range(Subject subject, u64 offset, u64 count, u64 limit) {
  if (offset > limit || count > limit - offset) [[unlikely]]
    fail(subject, Fault::range, offset, count, limit);
}

template <class T>
MESHPOST_FN void Rank::check_source(Subject subject, LocalSpan<T> span) {
  if (!span.valid()) [[unlikely]]
    fail(subject, Fault::span);
  if (span.size() != 0 && !span.data()) [[unlikely]]
    fail(subject, Fault::null_pointer, span.size());
}

template <class T>
MESHPOST_FN LocalSpan<T> Window<T>::local(Rank const& self) const {
  if (info_.world != self.world_) [[unlikely]]
    self.block_.fail_alone(Operation::local, Fault::foreign_window, info_.world, self.world_);
  if (self.may_be_freed(info_)) [[unlikely]]
    if (self.state_->freed.contains(info_.number))
      self.block_.fail_alone(Operation::local, Fault::freed_window, info_.number);
  auto const own = self.own(info_);
  return {reinterpret_cast<T*>(own.data), own.count};
}

}  // namespace meshpost
