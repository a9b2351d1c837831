#pragma once
#include "meshpost/rma/detail/fold.hpp"
#include "meshpost/rma/rank.hpp"

// Reductions, first on each device, then between devices. Ranks put their vectors into slots of
// their own device, and combine them there. The result is that device's part, and goes straight to
// the devices that need it. There each rank combines the parts.
//
// On a device the last rank to arrive combines short vectors, within the barrier, so the others
// wait for one meeting only. Their slots lie side by side, so that its threads load them all into
// the first cache at once. The threads that then combine them in order find them there. For longer
// vectors each rank combines a share, after the device's ranks have met, and before all ranks meet.
// A rank that is alone on its device needs neither slot nor meeting: its part is its vector.
//
// If every rank gets all of a long vector, over three devices or more, it goes in two hops
// (`piece`). Each device gets a piece of every device's part, combines it, and sends the result to
// all. So a device receives twice the vector in all, instead of one vector of each other device.
// The cost is one more barrier.
//
// Order: slots are written and read between two meetings of all. Data that is read has been
// written: the device's meeting ensures this, or the last rank has acquired all arrivals. Parts and
// combined pieces are written before a meeting of all and read behind it. Data written between
// meetings n and n + 1 lies in the half of n's parity. Nobody reads it beyond meeting n + 2, which
// every rank enters only after it has read. So a rank that writes into that half again, beyond n +
// 2, overwrites nothing that is still needed.

namespace meshpost {

namespace detail {

/// Bytes of a device's vectors that its last rank combines alone. With all loads in flight, this
/// takes about as long as a meeting of the device. On a CPU the others' cores would idle.
constexpr u64 combined_by_last = memory::on_gpu ? u64{64} << 10 : u64{8} << 10;

/// Bytes of a vector from which two hops are faster: a rank reads so much for each device in the
/// time of a barrier.
constexpr u64 pays_two_hops = u64{64} << 10;

/// Slots of short vectors lie side by side; those of longer ones are aligned so that wide units can
/// copy them.
MESHPOST_FN constexpr u64 pitch_of(u64 bytes) {
  return bytes <= 64 ? bytes : (bytes + 63) & ~63ull;
}

}  // namespace detail

MESHPOST_FN inline char* Rank::part(Communicator const& communicator, Group const& group,
                                    u32 device, Half half, u32 place) const {
  bool const own_device = communicator.shape == Communicator::Shape::device;
  u64 const number =
      static_cast<u64>(half) * communicator.place_count + (own_device ? 0 : group.places) + place;
  return on_device(device, communicator.parts + number * communicator.slot);
}

/// A step of a reduction.
struct Rank::Reduction {
  enum class To : u32 { all, root, owners };

  Operation operation;
  Communicator const& communicator;
  Group group;
  To to;
  u32 root;       ///< rank of the world
  u64 block;      ///< elements of an owner
  u64 done = 0;   ///< elements before this step
  u64 count = 0;  ///< elements of this step
  u64 piece = 0;  ///< elements of it that a device combines for all; 0: each rank combines all

  MESHPOST_FN bool one_hop_to_all() const { return to == To::all && piece == 0; }
  MESHPOST_FN bool alone() const { return group.local_size == 1; }
  /// The number in the group of the device that combines element `i` of this step, in two hops.
  MESHPOST_FN u32 place_of_piece(u64 i) const {
    return static_cast<u32>(i) / static_cast<u32>(piece);
  }
  /// The device that needs element `i` of this step, if there is only one.
  MESHPOST_FN u32 device_of(Rank const& self, u64 i) const {
    if (to == To::all) return self.place_of(communicator, group, place_of_piece(i));
    if (to == To::root) return self.state_->device_of(root);
    u32 const owner = static_cast<u32>((done + i) / block);
    return self.state_->device_of(self.member_of(communicator, group, owner));
  }
  /// The end of the range from `i` on that is known to go to one device.
  MESHPOST_FN u64 same_device(u64 i, u64 end) const {
    if (to == To::root) return end;
    u64 const next = to == To::all ? (place_of_piece(i) + u64{1}) * piece
                                   : ((done + i) / block + 1) * block - done;
    return detail::smaller(next, end);
  }
};

/// Sends elements [begin, end) of the step, which lie at `source`, to the other devices that need
/// them.
template <class T>
MESHPOST_FN void Rank::send_part(Reduction const& step, Half half, T const* source, u64 begin,
                                 u64 end) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  u32 place = 0;
  MESHPOST_ROLLED
  for (u64 from = begin; from < end;) {
    u64 to = end;
    u32 device = 0;
    if (step.one_hop_to_all()) {
      device = place_of(communicator, group, place);
    } else {
      device = step.device_of(*this, from);
      to = from;
      MESHPOST_ROLLED
      do to = step.same_device(to, end);
      while (to < end && step.device_of(*this, to) == device);
    }
    if (device != device_)
      via::write(*this, step.operation, device,
                 part(communicator, group, device, half, group.place) + from * sizeof(T),
                 source + (from - begin), (to - from) * sizeof(T));
    if (!step.one_hop_to_all() || ++place == group.devices) from = to;
  }
}

/// Combines elements [begin, end) of the vectors into place `place` of the parts of this device. If
/// possible, it also stores them at that place on all devices, and returns true.
template <class T, class Combine>
MESHPOST_FN bool Rank::fold_to_all(Reduction const& step, Half half, u32 place, bool to_all,
                                   detail::Vectors<T> const& vectors, u64 begin, u64 end,
                                   Combine combine) {
  auto const& communicator = step.communicator;
  // The parts of the world's devices lie evenly spaced. To store to all of them here is quicker
  // than to send them what this device has stored.
  bool const evenly = to_all && communicator.shape == Communicator::Shape::world &&
                      state_->requests.records == nullptr;
  char* const first = part(communicator, step.group, evenly ? 0 : device_, half, place);
  detail::fold<T>(
      {reinterpret_cast<T*>(first) + begin, state_->stride, evenly ? step.group.devices : 1},
      vectors, begin, end, thread(), threads(), combine);
  if (!evenly) block_.sync();  // what the other threads combined is complete and can be sent
  return evenly;
}

/// Loads bytes [begin, end) of each vector into the first cache, all at once; by all threads. A GPU
/// only: its loads fill the cache. The result of the vote is unused, but the vote keeps the
/// compiler from removing the loads.
MESHPOST_FN inline void Rank::touch(detail::Vectors<char> const& vectors, u64 begin, u64 end) {
  if constexpr (memory::on_gpu) {
    constexpr u64 sector = 32;  // unit of a GPU's cache
    begin &= ~(sector - 1);
    u32 const each = static_cast<u32>((end - begin + sector - 1) / sector);
    u32 seen = 0;
    for (u32 i = thread(); i < each * vectors.count; i += threads())
      seen |= *reinterpret_cast<u32 const*>(vectors.first + i / each * vectors.pitch + begin +
                                            i % each * sector);
    block_.any(seen != 0);
  }
}

/// Sends this device's part of a step to the devices that need it, then all ranks meet. After that
/// the parts are there.
template <class T, class Combine>
MESHPOST_FN void Rank::bring_parts(Reduction const& step, T const* data, Combine combine) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  u64 const bytes = step.count * sizeof(T), pitch = detail::pitch_of(bytes);
  u32 const before = generation(communicator);
  Half const half = half_of(before);
  u32 const local = group.index - group.local_first;
  bool const by_last = group.local_size * pitch <= detail::combined_by_last;
  bool last = false;
  u32 tells = 0;  // ranks
  block_.sync();
  if (step.alone()) {
    send_part<T>(step, half, data, 0, step.count);
  } else {
    char* const first = slots(communicator, group, device_, half);
    memory::copy(first + local * pitch, data, bytes, thread(), threads());
    u64 begin = 0, end = step.count;
    if (by_last) {
      last = block_.any(arrive(communicator, group));
      if (last) touch({.first = first, .pitch = 0, .count = 1}, 0, group.local_size * pitch);
    } else {
      meet_on_device(communicator, group, step.operation);
      u64 const share = (step.count + group.local_size - 1) / group.local_size;
      begin = detail::smaller(share * local, step.count);
      end = detail::smaller(begin + share, step.count);
      // A few elements are work for a few threads, which would wait for each vector separately.
      if (share < threads())
        touch({.first = first, .pitch = pitch, .count = group.local_size}, begin * sizeof(T),
              end * sizeof(T));
    }
    if ((last || !by_last) &&
        !fold_to_all<T>(step, half, group.place, step.one_hop_to_all(),
                        {.first = first, .pitch = pitch, .count = group.local_size}, begin, end,
                        combine))
      send_part<T>(
          step, half,
          reinterpret_cast<T*>(part(communicator, group, device_, half, group.place)) + begin,
          begin, end);
  }
  if (step.alone() || !by_last) {
    publish_beyond(group);
    tells = to_release(communicator, group);
  } else {
    block_.sync();
    if (last && thread() == 0) tells = group.local_size;
  }
  if (tells != 0) release(communicator, group, before + 1, tells);
  await_release(communicator, group, step.operation, before + 1);
}

/// One step. `data`: its elements. Stores those that this rank gets at `target`.
template <class T, class Combine>
MESHPOST_FN void Rank::reduce_step(Reduction const& step, T* target, T const* data,
                                   Combine combine) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  bring_parts<T>(step, data, combine);
  u32 const meetings = generation(communicator);
  Half const half = half_of(meetings), before = half_of(meetings - 1);
  u64 begin = 0, end = step.count;  // what this rank gets
  if (step.to == Reduction::To::root && id_ != step.root) end = 0;
  u64 first = 0;  // element at target[0]
  if (step.to == Reduction::To::owners) {
    first = group.index * step.block;
    u64 const done = step.done;
    begin = first > done ? detail::smaller(first - done, step.count) : 0;
    end = first + step.block > done ? detail::smaller(first + step.block - done, step.count) : 0;
  }
  // Parts came in the half before; the results of pieces go into this one.
  detail::Vectors<T> parts{.first = part(communicator, group, device_, before, 0),
                           .pitch = communicator.slot,
                           .count = group.devices};
  if (step.alone()) parts.own = group.place, parts.mine = data;
  if (step.piece != 0) {
    combine_piece<T>(step, half, parts, combine);
    meet(communicator, group, step.operation);
    parts = {.first = part(communicator, group, device_, half, 0), .pitch = 0, .count = 1};
  }
  if (begin >= end) return;
  T* const out = target + (step.done + begin - first);
  if (parts.count == 1)
    memory::copy(out, parts[0] + begin, (end - begin) * sizeof(T), thread(), threads());
  else detail::fold<T>({out}, parts, begin, end, thread(), threads(), combine);
}

/// Combines this device's piece of a step, by its ranks, and sends it to every device.
template <class T, class Combine>
MESHPOST_FN void Rank::combine_piece(Reduction const& step, Half half,
                                     detail::Vectors<T> const& parts, Combine combine) {
  auto const& communicator = step.communicator;
  auto const& group = step.group;
  u64 const first = detail::smaller(group.place * step.piece, step.count);
  u64 const past = detail::smaller(first + step.piece, step.count);
  u64 const share = (past - first + group.local_size - 1) / group.local_size;
  u64 const begin = detail::smaller(first + (group.index - group.local_first) * share, past);
  u64 const end = detail::smaller(begin + share, past);
  bool const sent = fold_to_all(step, half, 0, true, parts, begin, end, combine) || begin == end;
  MESHPOST_ROLLED
  for (u32 k = 0; !sent && k < group.devices; ++k) {
    u64 const offset = begin * sizeof(T);
    if (u32 const device = place_of(communicator, group, k); device != device_)
      via::write(*this, step.operation, device, part(communicator, group, device, half, 0) + offset,
                 part(communicator, group, device_, half, 0) + offset, (end - begin) * sizeof(T));
  }
  publish_beyond(group);
}

template <class T, class Combine>
MESHPOST_FN void Rank::reduce_steps(Reduction step, T* target, LocalSpan<T const> data,
                                    Combine combine) {
  static_assert(sizeof(T) <= 256, "collectives take elements of up to 256 bytes");
  Traced const traced(*this, step.operation, Note::no_rank, 0, 0, data.bytes());
  u64 const most = step.communicator.slot / sizeof(T);
  MESHPOST_ROLLED
  for (; step.done < data.size(); step.done += most) {
    step.count = detail::smaller(most, data.size() - step.done);
    bool const two_hops = step.to == Reduction::To::all && step.group.devices > 2 &&
                          step.count * sizeof(T) >= detail::pays_two_hops;
    step.piece = two_hops ? (step.count + step.group.devices - 1) / step.group.devices : 0;
    reduce_step<T>(step, target, data.data() + step.done, combine);
  }
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
