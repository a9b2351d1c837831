#pragma once
#include "meshpost/rma/rank.hpp"

// A barrier. Each device of the group has a word that counts the group's ranks. Every rank polls
// that word on its own device. The words count up through a whole run and wrap; the generation says
// which value to wait for. There are two ways to count:
//
// 1. Each rank counts itself on all devices: if the group has one device, and on GPUs if it has few
//    ranks, in a World whose ranks are all in reach of loads and stores. Order: the rank's threads
//    meet, and then one of them fences and adds. All adds to a word are read-modify-writes. So the
//    acquiring poll that finds the last one takes what each rank released.
// 2. Otherwise the ranks of a device count themselves there, and the last one tells every device of
//    the group of all of them. Order: fetch_add_device acquires and releases at device scope. So
//    the last rank has seen what all others of its device stored before the barrier. Its system
//    fence, cumulative, passes that on with the adds. The last rank sets `arrived` back before it
//    tells anybody, so the next barrier starts at 0. Before it tells them, it may work for its
//    device (reductions do): it has acquired what the others stored, and its adds release what it
//    stores.
//
// The first way has one trip to memory less, of two thirds of a microsecond on a GPU, but sends an
// add of each rank to each device. Devices need not go the same way, because a word counts ranks.
//
// The ranks of one device need less than a system fence: a fence of the device, which does not wait
// for stores that are on their way to other devices. On a GPU a rank alone needs no more than a
// meeting of its threads. On CPU devices it goes on like others, and so looks if the run was
// poisoned.

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

/// True if each rank of the group counts itself on all devices.
MESHPOST_FN inline bool Rank::tells_itself(Group const& group) const {
  return group.devices == 1 || via::each_rank_tells(*state_, group.devices, group.size);
}

/// By one thread: tells every device of the group of so many ranks of this device.
MESHPOST_FN inline void Rank::release(Communicator const& communicator, Group const& group,
                                      u32 next, u32 ranks) {
  if (group.devices == 1) {
    auto* const words = barrier_words(communicator, group, state_->device);
    return memory::add(&words->released[next % 2], 2 * ranks, Order::device);
  }
  memory::fence(Order::system);
  for (u32 i = 0; i < group.devices; ++i) {
    u32 const device = place_of(communicator, group, i);
    u32* const released = &barrier_words(communicator, group, device)->released[next % 2];
    via::raise(*state_, block_, device, released, 2 * ranks);
  }
}

/// Waits until this device was told of all ranks of the group.
template <bool inlined>
MESHPOST_FN void Rank::await_release(Communicator const& communicator, Group const& group,
                                     Operation operation, u32 next) {
  auto* const words = barrier_words(communicator, group, state_->device);
  await_word<inlined>(&words->released[next % 2], (next + next % 2) * group.size,
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

/// Counts this rank as arrived; by all threads. Returns how many ranks the calling thread has to
/// tell the devices of (release()): 0 in all threads except one of this rank, or of the last one.
MESHPOST_FN inline u32 Rank::to_release(Communicator const& communicator, Group const& group) {
  if (!tells_itself(group)) return arrive(communicator, group) ? group.local_size : 0;
  block_.step(hooks::Step::barrier_arrive);
  block_.sync();
  if (thread() != 0) return 0;
  block_.step(hooks::Step::barrier_release);
  return 1;
}

template <bool inlined>
MESHPOST_FN void Rank::meet(Communicator const& communicator, Group const& group,
                            Operation operation) {
  u32 const next = generation(communicator) + 1;
  if (u32 const ranks = to_release(communicator, group); ranks != 0)
    release(communicator, group, next, ranks);
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
/// meet() where each rank tells all devices itself: ranks of one device, or of the whole world. All
/// of it is by thread 0; the other threads only meet it. In a rank of many threads that takes half
/// the time.
MESHPOST_FN inline void Rank::meet_by_few(Communicator const& communicator, u32 next) {
  bool const of_world = communicator.shape == Communicator::Shape::world;
  bool ends = block_.tick_by_few();
  if (thread() == 0) ends |= communicator.world != world_;
  if (block_.any(ends)) [[unlikely]] {
    joined_group(Operation::barrier, communicator);  // which may say what is wrong
    block_.leave();
  }
  if (thread() < 32) {
    u32 const devices = of_world ? state_->devices : 1, group = of_world ? 0 : device_;
    auto const released_on = [&](u32 device) {
      auto* const words =
          reinterpret_cast<BarrierWords*>(on_device(device, communicator.barriers)) + group;
      return &words->released[next % 2];
    };
    auto* const released = released_on(device_);
    if (thread() == 0) {
      memory::fence(devices == 1 ? Order::device : Order::system);
      if (devices == 1) memory::add(released, 2, Order::none);
      else
        for (u32 device = 0; device < devices; ++device)
          memory::add(released_on(device), 2, Order::none);
    }
    ends = block_.await_by_few(Condition{released, (next + next % 2) * devices * ranks_per_device_,
                                         WordType::counter, Compare::greater_equal},
                               Note{Operation::barrier, communicator.number, 0, next},
                               state_->command_queue);
  }
  if (block_.any(ends)) [[unlikely]]
    block_.leave();
}
#endif

MESHPOST_FN inline void Rank::barrier(Communicator const& communicator) {
#if defined(__CUDA_ARCH__)
  if (traced_ == 0) {
    if (communicator.shape == Communicator::Shape::device && ranks_per_device_ > 1)
      return meet_by_few(communicator, ++device_generation_);
    if (communicator.shape == Communicator::Shape::world && state_->ranks > 1 &&
        (state_->devices == 1 || via::each_rank_tells(*state_, state_->devices, state_->ranks))) {
      meet_by_few(communicator, ++world_generation_);
      // Thread 0 has fenced for the system, if there is another device, and all have acquired what
      // was before.
      unfenced_ = brings_ = false;
      return;
    }
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
