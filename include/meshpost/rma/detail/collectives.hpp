#pragma once
#include "meshpost/rma/detail/fold.hpp"
#include "meshpost/rma/rank.hpp"

// Collectives: a rank writes its data to every device of the group, once, because the ranks of a
// device share its memory. After a barrier each rank reads on its own device. The gathering area
// has two halves, which alternate by the parity of the group's barriers. A rank writes a half again
// only after a further barrier. Every rank enters that barrier only after it has read. Longer
// vectors go in steps of a slot.
//
// A long broadcast takes two hops, because one rank alone sends slowly. The root gives each device
// a piece. The ranks of the device send the piece on to all devices, each rank a share. They have
// acquired the piece at the barrier between the hops. They write behind that barrier, so into the
// other half.

namespace meshpost {

namespace detail {
/// Bytes from which a broadcast takes two hops: one rank sends so much in the time of a barrier.
constexpr u64 pays_sharing = u64{64} << 10;
}  // namespace detail

/// The beginning of the group's slots on a device.
MESHPOST_FN inline char* Rank::slots(Communicator const& communicator, Group const& group,
                                     u32 device, Half half) const {
  bool const own_device = communicator.shape == Communicator::Shape::device;
  u64 const before = static_cast<u64>(half) * communicator.slots + (own_device ? 0 : group.members);
  return on_device(device, communicator.gather + before * communicator.slot);
}

/// Copies `bytes` at `source` to the same place in the gathering area of every device. All ranks
/// see them after the next meeting. By all threads.
MESHPOST_FN inline void Rank::send_to_all(Communicator const& communicator, Group const& group,
                                          Half half, u64 offset, void const* source, u64 bytes,
                                          Operation operation) {
  MESHPOST_ROLLED
  for (u32 place = 0; place < group.devices; ++place) {
    u32 const device = place_of(communicator, group, place);
    via::write(*this, operation, device, slots(communicator, group, device, half) + offset, source,
               bytes);
  }
  publish_beyond(group);
}

/// By all threads: completes what they stored beyond the device; the next add releases it. A rank
/// that tells all devices of its arrival has a fence there (release).
MESHPOST_FN inline void Rank::publish_beyond(Group const& group) {
  if (tells_itself(group)) return;
  block_.sync();
  if (thread() == 0) memory::fence(Order::system);
}

template <class T>
MESHPOST_FN void Rank::all_gather(Communicator const& communicator, LocalSpan<T> target,
                                  LocalSpan<NonDeduced<T> const> mine) {
  constexpr auto operation = Operation::all_gather;
  block_.tick();
  check_source(operation, target);
  check_source(operation, mine);
  Group const group = joined_group(operation, communicator);
  if (target.size() / group.size < mine.size())
    fail(operation, Fault::size, mine.size() * group.size, target.size());
  Traced const traced(*this, operation, Note::no_rank, 0, 0, mine.bytes());
  u64 const step = communicator.slot / sizeof(T);
  static_assert(sizeof(T) <= 256, "collectives take elements of up to 256 bytes");
  // In a single step slots lie side by side, as in the target. So they are read as one run.
  bool const single = mine.size() <= step;
  u64 const pitch = single ? mine.size() * sizeof(T) : communicator.slot;
  MESHPOST_ROLLED
  for (u64 done = 0; done < mine.size(); done += step) {
    u64 const bytes = detail::smaller(step, mine.size() - done) * sizeof(T);
    Half const half = half_of(generation(communicator));
    block_.sync();
    send_to_all(communicator, group, half, group.index * pitch, mine.data() + done, bytes,
                operation);
    meet(communicator, group, operation);
    char const* const gathered = slots(communicator, group, device_, half);
    MESHPOST_ROLLED
    for (u32 r = 0; r < (single ? 1 : group.size); ++r)
      memory::copy(target.data() + r * mine.size() + done, gathered + r * pitch,
                   single ? bytes * group.size : bytes, thread(), threads());
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
  u64 const step =
      communicator.slot * static_cast<u64>(group.size) / sizeof(T);  // the root has all slots
  MESHPOST_ROLLED
  for (u64 done = 0; done < data.size(); done += step)
    broadcast_step(communicator, group, reinterpret_cast<char*>(data.data() + done),
                   detail::smaller(step, data.size() - done) * sizeof(T), group.index == root);
  block_.sync();
}

/// One step, of `bytes` at `data`.
MESHPOST_FN inline void Rank::broadcast_step(Communicator const& communicator, Group const& group,
                                             char* data, u64 bytes, bool sender) {
  constexpr auto operation = Operation::broadcast;
  block_.sync();
  char const* source = data;
  u64 begin = 0, end = sender ? bytes : 0;  // what this rank sends to all
  if (group.devices > 1 && group.size > 2 && bytes >= detail::pays_sharing) {
    Half const half = half_of(generation(communicator));
    u64 const piece = detail::share_of(bytes, group.devices);
    MESHPOST_ROLLED
    for (u32 k = 0; sender && k < group.devices; ++k) {
      u64 const from = detail::smaller(k * piece, bytes);
      u32 const device = place_of(communicator, group, k);
      via::write(*this, operation, device, slots(communicator, group, device, half) + from,
                 data + from, detail::smaller(piece, bytes - from));
    }
    publish_beyond(group);
    meet(communicator, group, operation);
    u64 const first = detail::smaller(group.place * piece, bytes);
    u64 const past = detail::smaller(first + piece, bytes);
    u64 const share = detail::share_of(past - first, group.local_size);
    begin = detail::smaller(first + (group.index - group.local_first) * share, past);
    end = detail::smaller(begin + share, past);
    source = slots(communicator, group, device_, half);
  }
  Half const half = half_of(generation(communicator));
  if (begin < end)
    send_to_all(communicator, group, half, begin, source + begin, end - begin, operation);
  meet(communicator, group, operation);
  if (!sender)
    memory::copy(data, slots(communicator, group, device_, half), bytes, thread(), threads());
}

}  // namespace meshpost
