#pragma once
#include "meshpost/rma/rank.hpp"

// Collectives: who has something writes it to every device of the group, once, for the ranks of a
// device share its memory; a barrier; then everybody reads on its own device. The gathering area
// has two halves, used in turn by the parity of the group's barriers: a rank writes a half again
// only after a further barrier, which every rank enters only when it has done reading. Longer
// vectors go in steps of a slot.

namespace meshpost {

MESHPOST_FN inline char* Rank::slot(Communicator const& communicator, Group const& group,
                                    u32 device, u32 half, u32 index) const {
  u64 const place = static_cast<u64>(half) * state_->ranks + group.members + index;
  return on_device(device, communicator.gather + place * communicator.slot);
}

namespace detail {
MESHPOST_FN constexpr u64 smaller(u64 a, u64 b) { return a < b ? a : b; }
}  // namespace detail

template <class T>
MESHPOST_FN void Rank::all_gather(Communicator const& communicator, LocalSpan<T> target,
                                  LocalSpan<NonDeduced<T> const> mine) {
  constexpr auto operation = Operation::all_gather;
  block_.tick();
  check_source(operation, target);
  check_source(operation, mine);
  member(operation, communicator, id(communicator));  // or this rank is in no group
  Group const group = group_of(communicator);
  if (target.size() / group.size < mine.size())
    fail(operation, Fault::size, mine.size() * group.size, target.size());
  Traced const traced(*this, operation, Note::no_rank, 0, 0, mine.bytes());
  u64 const step = communicator.slot / sizeof(T);
  static_assert(sizeof(T) <= 256, "collectives take elements of up to 256 bytes");
  for (u64 done = 0; done < mine.size(); done += step) {
    u64 const count = detail::smaller(step, mine.size() - done);
    u32 const half = generation(communicator) % 2;
    block_.sync();
    for (u32 i = 0; i < group.devices; ++i) {
      u32 const device = place_of(communicator, group, i);
      copy_to(device, slot(communicator, group, device, half, group.index), mine.data() + done,
              count * sizeof(T), operation);
    }
    block_.sync();
    if (thread() == 0 && group.devices > 1) memory::fence(Order::system);
    meet(communicator, group, operation);
    for (u32 r = 0; r < group.size; ++r)
      memory::copy(target.data() + r * mine.size() + done,
                   slot(communicator, group, state_->device, half, r), count * sizeof(T), thread(),
                   threads());
  }
  block_.sync();
}

template <class T>
MESHPOST_FN void Rank::broadcast(Communicator const& communicator, LocalSpan<T> data, RankId root) {
  constexpr auto operation = Operation::broadcast;
  static_assert(sizeof(T) <= 256, "collectives take elements of up to 256 bytes");
  block_.tick();
  check_source(operation, data);
  member(operation, communicator, root);
  Group const group = group_of(communicator);
  Traced const traced(*this, operation, Note::no_rank, 0, 0, data.bytes());
  bool const sender = group.index == root;
  u64 const step =
      communicator.slot * static_cast<u64>(group.size) / sizeof(T);  // the root has all slots
  for (u64 done = 0; done < data.size(); done += step) {
    u64 const count = detail::smaller(step, data.size() - done);
    u32 const half = generation(communicator) % 2;
    block_.sync();
    for (u32 i = 0; sender && i < group.devices; ++i) {
      u32 const device = place_of(communicator, group, i);
      copy_to(device, slot(communicator, group, device, half, 0), data.data() + done,
              count * sizeof(T), operation);
    }
    block_.sync();
    if (thread() == 0 && sender && group.devices > 1) memory::fence(Order::system);
    meet(communicator, group, operation);
    if (!sender)
      memory::copy(data.data() + done, slot(communicator, group, state_->device, half, 0),
                   count * sizeof(T), thread(), threads());
  }
  block_.sync();
}

}  // namespace meshpost
