#pragma once
#include "meshpost/rma/rank.hpp"

// A barrier in two steps. The ranks of a device count themselves, and the last one tells every
// device of the group, by one add to a word there. Each rank polls that word on its own device.
//
// Order: fetch_add_device acquires and releases at device scope. So the last rank has seen what all
// others of its device stored before the barrier. Its system fence, cumulative, passes that on with
// the adds. The acquiring poll takes it. The words count up through a whole run and wrap; the
// generation says which value to wait for. The last rank sets `arrived` back before it releases
// anybody, so the next barrier starts at 0.
//
// The ranks of one device need less: a fence of the device, which does not wait for stores that are
// on their way to other devices. On a GPU a rank alone needs no more than a meeting of its threads.
// On CPU devices it goes on like others, and so looks if the run was poisoned.
//
// Between the two steps the last rank may work for its device (reductions do). It has acquired what
// the others stored, and its adds release what it stores.

namespace meshpost {

MESHPOST_FN inline u32 Rank::generation(Communicator const& communicator) const {
  switch (communicator.shape) {
    case Communicator::Shape::world: return world_generation_;
    case Communicator::Shape::device: return device_generation_;
    case Communicator::Shape::split: break;
  }
  return reinterpret_cast<u32 const*>(
      on_device(state_->device, communicator.generations))[local_id_];
}

MESHPOST_FN inline BarrierWords* Rank::barrier_words(Communicator const& communicator,
                                                     Group const& group, u32 device) const {
  return reinterpret_cast<BarrierWords*>(on_device(device, communicator.barriers)) + group.number;
}

/// Waits until the word has counted up to `value`. A collective waits at several places, which
/// share one function. That is less to fetch and to keep in registers than a loop at each place.
template <bool inlined>
MESHPOST_FN void Rank::await_word(u32 const* word, u32 value, Note const& note) {
  Condition const condition{word, value, WordType::counter, Compare::greater_equal};
  if constexpr (inlined) block_.await(condition, note, state_->command_queue);
  else block_.await_out_of_line(condition, note, state_->command_queue);
}

/// Counts this rank as arrived; by all threads. Returns true to thread 0 of the last rank of the
/// group on this device.
MESHPOST_FN inline bool Rank::arrive(Communicator const& communicator, Group const& group) {
  auto* const words = barrier_words(communicator, group, state_->device);
  block_.step(hooks::Step::barrier_arrive);
  block_.sync();
  if (thread() != 0) return false;
  if (memory::fetch_add_device(&words->arrived, 1) + 1 != group.local_size) return false;
  memory::store_relaxed(&words->arrived, 0);
  block_.step(hooks::Step::barrier_release);
  return true;
}

/// By thread 0 of the last rank: tells every device of the group.
MESHPOST_FN inline void Rank::release(Communicator const& communicator, Group const& group,
                                      u32 next) {
  if (group.devices == 1) {
    auto* const words = barrier_words(communicator, group, state_->device);
    return memory::add(&words->released[next % 2], 2, Order::device);
  }
  memory::fence(Order::system);
  for (u32 i = 0; i < group.devices; ++i) {
    u32 const device = place_of(communicator, group, i);
    u32* const released = &barrier_words(communicator, group, device)->released[next % 2];
    via::raise(*state_, block_, device, released, u32{2});
  }
}

/// Waits until all devices of the group have told this one.
template <bool inlined>
MESHPOST_FN void Rank::await_release(Communicator const& communicator, Group const& group,
                                     Operation operation, u32 next) {
  auto* const words = barrier_words(communicator, group, state_->device);
  await_word<inlined>(&words->released[next % 2], (next + next % 2) * group.devices,
                      {operation, communicator.number, 0, next});
  switch (communicator.shape) {
    case Communicator::Shape::world:
      world_generation_ = next;
      brings_ = unfenced_;  // all have acquired what was before
      break;
    case Communicator::Shape::device: device_generation_ = next; break;
    case Communicator::Shape::split:
      if (thread() == 0)
        reinterpret_cast<u32*>(on_device(state_->device, communicator.generations))[local_id_] =
            next;
      block_.sync();
      break;
  }
}

template <bool inlined>
MESHPOST_FN void Rank::meet(Communicator const& communicator, Group const& group,
                            Operation operation) {
  u32 const next = generation(communicator) + 1;
  if (arrive(communicator, group)) release(communicator, group, next);
  await_release<inlined>(communicator, group, operation, next);
}

/// A meeting of the group's ranks on this device alone, between two meetings of all. `met` can't
/// change between a rank's load of it and its arrival, because it changes after the arrivals of
/// all.
MESHPOST_FN inline void Rank::meet_on_device(Communicator const& communicator, Group const& group,
                                             Operation operation) {
  auto* const words = barrier_words(communicator, group, state_->device);
  u32 const met = memory::load_relaxed(&words->met);
  if (arrive(communicator, group)) memory::add(&words->met, 1, Order::device);
  await_word<false>(&words->met, met + 1u,
                    {operation, communicator.number, 0, generation(communicator) + 1});
}

#if defined(__CUDA_ARCH__)
/// meet() for ranks of one device, all of it by thread 0; the other threads only meet it. In a rank
/// of many threads that takes half the time.
MESHPOST_FN inline void Rank::meet_by_few(Communicator const& communicator, u32 number, u32 next) {
  bool ends = block_.tick_by_few();
  if (thread() == 0) ends |= communicator.world != world_;
  if (block_.any(ends)) [[unlikely]] {
    joined_group(Operation::barrier, communicator);  // which may say what is wrong
    block_.leave();
  }
  if (thread() < 32) {
    auto* const words =
        reinterpret_cast<BarrierWords*>(on_device(state_->device, communicator.barriers)) + number;
    auto* const released = &words->released[next % 2];
    if (thread() == 0 && memory::fetch_add_device(&words->arrived, 1) + 1 == ranks_per_device_) {
      memory::store_relaxed(&words->arrived, 0);
      memory::add(released, 2, Order::device);
    }
    ends = block_.await_by_few(
        Condition{released, next + next % 2, WordType::counter, Compare::greater_equal},
        Note{Operation::barrier, communicator.number, 0, next}, state_->command_queue);
  }
  if (block_.any(ends)) [[unlikely]]
    block_.leave();
}
#endif

MESHPOST_FN inline void Rank::barrier(Communicator const& communicator) {
#if defined(__CUDA_ARCH__)
  if (traced_ == 0 && ranks_per_device_ > 1) {
    if (communicator.shape == Communicator::Shape::device)
      return meet_by_few(communicator, device_, ++device_generation_);
    if (communicator.shape == Communicator::Shape::world && state_->devices == 1)
      return meet_by_few(communicator, 0, ++world_generation_);
  }
#endif
  block_.tick();
  Group const group = joined_group(Operation::barrier, communicator);
  Traced const traced(*this, Operation::barrier);
  if constexpr (memory::on_gpu)
    if (group.size == 1) return block_.sync();
  meet<true>(communicator, group, Operation::barrier);
}

MESHPOST_FN inline void Rank::barrier() { barrier(state_->tags.communicator); }

}  // namespace meshpost
