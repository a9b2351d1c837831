#pragma once
#include "meshpost/rma/rank.hpp"

// Reductions, first on each device, then between devices in one hop: ranks put what they have into
// slots of their own device; what came of a device's goes to every device that wants it; there each
// rank combines what came of the devices. Short vectors are combined by the last rank to arrive,
// within the barrier. Of longer ones each rank of a device combines a share, after the device's
// ranks have met, and before all do.
//
// Order: slots are written and read on one device, between two meetings of all ranks in turn; that
// what is read has been written, the device's meeting sees to, or that the last one has acquired
// all arrivals. Parts are written before a meeting of all and read after it. Both have two halves,
// used in turn by the parity of those meetings: who writes into a half has passed the meeting that
// every rank enters only when it has done reading from it.

namespace meshpost {

namespace detail {

constexpr u64 combined_by_one = 512;  ///< bytes; so the others only wait for one meeting

/// Element `i` of `count` vectors, `pitch` bytes apart, combined in their order. Several are loaded
/// at once: a load takes a GPU far longer than to combine.
template <class T, class Combine>
MESHPOST_FN T combined(char const* first, u64 pitch, u32 count, u64 i, Combine combine) {
  constexpr u32 at_once = sizeof(T) <= 8 ? 16 : sizeof(T) <= 32 ? 4 : 1;
  auto const at = [&](u32 k) { return reinterpret_cast<T const*>(first + k * pitch) + i; };
  T sum = *at(0);
  u32 k = 1;
  for (; k + at_once <= count; k += at_once) {
    T loaded[at_once];
    for (u32 j = 0; j < at_once; ++j) loaded[j] = *at(k + j);
    for (u32 j = 0; j < at_once; ++j) sum = combine(sum, loaded[j]);
  }
  for (; k < count; ++k) sum = combine(sum, *at(k));
  return sum;
}

}  // namespace detail

MESHPOST_FN inline char* Rank::part(Communicator const& communicator, Group const& group,
                                    u32 device, u32 half, u32 place) const {
  u64 const number = static_cast<u64>(half) * communicator.place_count + group.places + place;
  return on_device(device, communicator.parts + number * communicator.slot);
}

/// A reduction, and how far it is.
struct Rank::Reduction {
  enum class To : u32 { all, root, owners };

  Operation operation;
  Communicator const& communicator;
  Group group;
  To to;
  u32 root;      ///< rank of the world
  u64 block;     ///< elements of an owner
  u64 done = 0;  ///< elements before this step

  /// The only device that wants element `i` of this step.
  MESHPOST_FN u32 device_of(Rank const& self, u64 i) const {
    if (to == To::root) return self.state_->device_of(root);
    u32 const owner = static_cast<u32>((done + i) / block);
    return self.state_->device_of(self.member_of(communicator, group, owner));
  }
};

/// What this device's ranks have of elements [begin, end), combined, to the devices that want it.
template <class T, class Combine>
MESHPOST_FN void Rank::combine_own(Reduction const& step, u32 half, u64 begin, u64 end,
                                   Combine combine) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  auto const part_at = [&](u32 device) {
    return reinterpret_cast<T*>(part(communicator, group, device, half, group.place));
  };
  char const* const slots = slot(communicator, group, device_, half, group.local_first);
  for (u64 i = begin + thread(); i < end; i += threads()) {
    T const sum = detail::combined<T>(slots, communicator.slot, group.local_size, i, combine);
    part_at(device_)[i] = sum;  // also what is sent far
    if (step.to == Reduction::To::all) {
      for (u32 k = 0; k < group.devices; ++k) {
        u32 const device = place_of(communicator, group, k);
        if (device != device_ && !is_far(device)) part_at(device)[i] = sum;
      }
    } else {
      u32 const device = step.device_of(*this, i);
      if (device != device_ && !is_far(device)) part_at(device)[i] = sum;
    }
  }
  if (state_->posts.records != nullptr) send_far<T>(step, half, begin, end);
}

/// The same to devices out of reach of stores.
template <class T>
MESHPOST_FN void Rank::send_far(Reduction const& step, u32 half, u64 begin, u64 end) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  auto const send = [&](u32 device, u64 from, u64 to) {
    if (!is_far(device)) return;
    u64 const offset = from * sizeof(T);
    post(step.operation, {.target = part(communicator, group, device, half, group.place) + offset,
                          .source = part(communicator, group, device_, half, group.place) + offset,
                          .bytes = (to - from) * sizeof(T)});
  };
  block_.sync();
  if (begin == end) return;
  if (step.to == Reduction::To::all) {
    for (u32 k = 0; k < group.devices; ++k) send(place_of(communicator, group, k), begin, end);
    return;
  }
  for (u64 from = begin, to; from < end; from = to) {
    u32 const device = step.device_of(*this, from);
    for (to = from + 1; to < end && step.device_of(*this, to) == device;) ++to;
    send(device, from, to);
  }
}

/// One step: of `count` elements at `data`, those that this rank gets to `target`.
template <class T, class Combine>
MESHPOST_FN void Rank::reduce_step(Reduction const& step, T* target, T const* data, u64 count,
                                   Combine combine) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  u32 const half = generation(communicator) % 2;
  block_.sync();
  memory::copy(slot(communicator, group, device_, half, group.index), data, count * sizeof(T),
               thread(), threads());
  if (count * sizeof(T) <= detail::combined_by_one) {
    meet(communicator, group, step.operation,
         [&] { combine_own<T>(step, half, 0, count, combine); });
  } else {
    meet_on_device(communicator, group, step.operation);
    u64 const share = (count + group.local_size - 1) / group.local_size;
    u64 const begin = detail::smaller(share * (group.index - group.local_first), count);
    combine_own<T>(step, half, begin, detail::smaller(begin + share, count), combine);
    block_.sync();
    if (thread() == 0 && group.devices > 1) memory::fence(Order::system);
    meet(communicator, group, step.operation);
  }
  u64 begin = 0, end = count;  // what this rank gets
  if (step.to == Reduction::To::root && id_ != step.root) end = 0;
  u64 first = 0;  // of the elements: target[0]
  if (step.to == Reduction::To::owners) {
    first = group.index * step.block;
    u64 const done = step.done;
    begin = first > done ? detail::smaller(first - done, count) : 0;
    end = first + step.block > done ? detail::smaller(first + step.block - done, count) : 0;
  }
  char const* const parts = part(communicator, group, device_, half, 0);
  for (u64 i = begin + thread(); i < end; i += threads())
    target[step.done + i - first] =
        detail::combined<T>(parts, communicator.slot, group.devices, i, combine);
}

template <class T, class Combine>
MESHPOST_FN void Rank::reduce_steps(Reduction step, T* target, LocalSpan<T const> data,
                                    Combine combine) {
  static_assert(sizeof(T) <= 256, "collectives take elements of up to 256 bytes");
  Traced const traced(*this, step.operation, Note::no_rank, 0, 0, data.bytes());
  u64 const most = step.communicator.slot / sizeof(T);
  for (; step.done < data.size(); step.done += most)
    reduce_step<T>(step, target, data.data() + step.done,
                   detail::smaller(most, data.size() - step.done), combine);
  block_.sync();
}

template <class T, class Combine>
MESHPOST_FN void Rank::reduce(Communicator const& communicator, LocalSpan<T> data, Combine combine,
                              RankId root) {
  constexpr auto operation = Operation::reduce;
  block_.tick();
  check_source(operation, data);
  u32 const at = member(operation, communicator, root);
  reduce_steps<T>({operation, communicator, group_of(communicator), Reduction::To::root, at, 0},
                  data.data(), data, combine);
}

template <class T, class Combine>
MESHPOST_FN void Rank::all_reduce(Communicator const& communicator, LocalSpan<T> data,
                                  Combine combine) {
  constexpr auto operation = Operation::all_reduce;
  block_.tick();
  check_source(operation, data);
  member(operation, communicator, RankId{0});
  reduce_steps<T>({operation, communicator, group_of(communicator), Reduction::To::all, 0, 0},
                  data.data(), data, combine);
}

template <class T, class Combine>
MESHPOST_FN void Rank::reduce_scatter(Communicator const& communicator, LocalSpan<T> target,
                                      LocalSpan<NonDeduced<T> const> data, Combine combine) {
  constexpr auto operation = Operation::reduce_scatter;
  block_.tick();
  check_source(operation, target);
  check_source(operation, data);
  member(operation, communicator, RankId{0});
  Group const group = group_of(communicator);
  if (data.size() % group.size != 0 || data.size() / group.size != target.size())
    fail(operation, Fault::size, data.size(), target.size() * group.size);
  reduce_steps<T>({operation, communicator, group, Reduction::To::owners, 0, target.size()},
                  target.data(), data, combine);
}

}  // namespace meshpost
