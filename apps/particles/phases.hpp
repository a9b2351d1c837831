#pragma once
// The two phases of a step, as both versions compute them: collect the particles of each segment
// from the lists, then move each of them and write new lists.
//
// Lists and contents begin at different segments: place k of the content is the segment of list
// k + 1, because particles come from the segments below and above.
#include "lists.hpp"
#include "model.hpp"

namespace particles {

/// Copies the particles of one chunk of list `j`, that of `segment`, to their segments. A segment
/// gets those from below first, then those that stay, then those from above, each in the order of
/// their list. So the order does not depend on who computes it, or on how the domain is cut. With
/// the first chunk it counts the particles that its own segment will have. False, with `trouble`,
/// if these are more than the capacity; the rest is left out.
/// Called by: all lanes.
template <class Real>
MESHPOST_FN inline bool collect_chunk(Lists<Real> const& lists, u32 j, u32 chunk,
                                      Content<Real> const& to, u32 segment, u32 step,
                                      Trouble& trouble) {
  auto const list = lists[j];
  u32 const last = to.segments + 1;  // the last list
  // A load takes a GPU long. So it does these at once, also those that it may not need.
  Header<Real> const below2(lists[j >= 2 ? j - 2 : j]), below(lists[j >= 1 ? j - 1 : j]);
  Header<Real> const own(list), above(lists[j < last ? j + 1 : j]);
  auto const& from = list.slots(chunk);
#if defined(__CUDA_ARCH__)
  auto const early = Slot<Real>::of(from, threadIdx.x % lanes);
#endif
  u32 const begin = chunk * lanes, count = list.count(), capacity = to.capacity();
  bool const inner = j >= 1 && j < last;  // its own segment is part of the content
  bool good = true;
  if (inner && chunk == 0) {
    u32 const all = below.totals().ups + own.stays() + above.totals().downs;
    good = all <= capacity;
    if (leads()) {
      to.count[j - 1] = good ? all : capacity;
      if (!good) trouble.note({Trouble::overflow, step, segment, all, 0});
    }
  }
  if (begin >= count) return good;
  u32 const ups = list.ups(chunk), downs = list.downs(chunk);
  if (!inner && (j == 0 ? ups : downs) == 0) return good;
  auto const before = own.totals(chunk);
  u32 const none = ~0u;  // beyond every capacity
  u32 const stay = inner ? below.totals().ups + begin - before.ups - before.downs : none;
  u32 const up = j < to.segments ? before.ups : none;
  u32 const down = downs != 0 && j >= 2 ? below2.totals().ups + below.stays() + before.downs : none;
  each_lane([&](u32 lane) {
    if (begin + lane >= count) return;
    u32 const bit = 1u << lane, lower = bit - 1;
    u32 base = stay, place = lane - count_bits((ups | downs) & lower), k = j - 1;
    if (ups & bit) base = up, place = count_bits(ups & lower), k = j;
    if (downs & bit) base = down, place = count_bits(downs & lower), k = j - 2;
    if (base == none || base + place >= capacity) return;
#if defined(__CUDA_ARCH__)
    auto const& particle = early;
#else
    auto const particle = Slot<Real>::of(from, lane);
#endif
    u64 const slot = u64{k} * capacity + base + place;
    to.x[slot] = particle.x;
    to.y[slot] = particle.y;
    to.vx[slot] = particle.vx;
    to.vy[slot] = particle.vy;
    to.id[slot] = particle.id;
  });
  return good;
}

/// Which of 32 particles are near `x` along x: bit i stands for the i-th. A test of one coordinate
/// leaves out nearly all, because a segment is much longer than the cutoff.
template <class Real>
MESHPOST_FN inline u32 near_bits(Real const* others, Real x, Real cutoff) {
  u32 bits = 0;
#if defined(__CUDA_ARCH__)
  struct alignas(16) Quad {  // one load
    Real values[16 / sizeof(Real)];
  };
  constexpr u32 each = 16 / sizeof(Real);
#pragma unroll
  for (u32 q = 0; q < lanes / each; ++q) {
    Quad const quad = reinterpret_cast<Quad const*>(others)[q];
#pragma unroll
    for (u32 k = 0; k < each; ++k)
      if (std::abs(quad.values[k] - x) < cutoff) bits |= 1u << (q * each + k);
  }
#else
  for (u32 k = 0; k < lanes; ++k) bits |= static_cast<u32>(std::abs(others[k] - x) < cutoff) << k;
#endif
  return bits;
}

/// The force on slot `slot` of place `k`: of the segment below, then its own, then the one above,
/// each in the order of its slots. Slots behind a segment's last one may hold anything.
template <class Real>
MESHPOST_FN inline Vector<Real> force_on(Model<Real> const& model, Content<Real> const& content,
                                         u32 k, u32 slot) {
  u32 const capacity = content.capacity();
  u64 const own = u64{k} * capacity + slot;
  Real const x = content.x[own], y = content.y[own];
  Vector<Real> sum{Real(0), Real(0)};
  for (u32 side = 0; side < 3; ++side) {
    u32 const there = k + side - 1, count = content.count[there];
    Real const shift = side == 0 ? model.height : side == 1 ? Real(0) : -model.height;
    // 64 at once: the lanes of a warp take the few near ones in turns, and waste fewer turns.
    for (u32 begin = 0; begin < count; begin += 2 * lanes) {
      u64 const base = u64{there} * capacity + begin;
      u64 bits = near_bits(content.x + base, x, model.cutoff);
      if (begin + lanes < count)
        bits |= u64{near_bits(content.x + base + lanes, x, model.cutoff)} << lanes;
      if (count - begin < 2 * lanes) bits &= (u64{1} << (count - begin)) - 1;
      if (there == k && slot / (2 * lanes) * (2 * lanes) == begin)
        bits &= ~(u64{1} << slot % (2 * lanes));  // itself
      for (; bits != 0; bits &= bits - 1) {
        u64 const other = base + lowest_bit(bits);
        add_force(model, x - content.x[other], (y - content.y[other]) + shift, sum);
      }
    }
  }
  return sum;
}

/// Moves the particles of a chunk of `segment`, which is place `k`, and writes them to its list.
/// False, with `trouble`, if one went too far. Called by: all lanes.
template <class Real>
MESHPOST_FN inline bool move_chunk(Model<Real> const& model, Content<Real> const& content, u32 k,
                                   u32 chunk, List<Real> const& to, u32 segment, u32 step,
                                   Trouble& trouble) {
  u32 const begin = chunk * lanes, count = content.count[k];
  if (chunk == 0 && leads()) {
    to.count() = count;
    for (u32 c = (count + lanes - 1) / lanes; c < content.chunks; ++c) to.ups(c) = to.downs(c) = 0;
  }
  if (begin >= count) return true;
  bool good = true;
  u32 ups = 0, downs = 0;
  auto& slots = to.slots(chunk);
  each_lane([&](u32 lane) {
    if (begin + lane >= count) return;
    u64 const own = u64{k} * content.capacity() + begin + lane;
    Particle<Real> const old{content.x[own], content.y[own], content.vx[own], content.vy[own]};
    auto const moved = move(model, old, force_on(model, content, k, begin + lane), segment);
    slots.x[lane] = moved.particle.x;
    slots.y[lane] = moved.particle.y;
    slots.vx[lane] = moved.particle.vx;
    slots.vy[lane] = moved.particle.vy;
    slots.id[lane] = content.id[own];
    ups |= static_cast<u32>(moved.way > 0) << lane;
    downs |= static_cast<u32>(moved.way < 0) << lane;
    if (moved.far) {
      good = false;
      trouble.note(
          {Trouble::went_far, step, segment, content.id[own], static_cast<double>(moved.distance)});
    }
  });
  ups = joined(ups);
  downs = joined(downs);
  if (leads()) {
    to.ups(chunk) = ups;
    to.downs(chunk) = downs;
  }
  return good;
}

}  // namespace particles
