#pragma once
#include <algorithm>
#include <meshpost/meshpost.hpp>
#include <vector>

#include "common/four.hpp"

namespace diffusion {

using meshpost::u32;
using meshpost::u64;
using meshpost::apps::Four;

inline constexpr u32 halo = 2;

/// The whole field and how it is cut. In memory a field is [row][level][column], so the two rows
/// that a neighbour needs are one piece. A line is the points of a row and a level. Devices get
/// whole rows. A device's ranks get lines one behind the other, as many as two rows have or more.
/// So a rank needs lines of its two neighbours only. The first and the last rank of a device may
/// send to other devices. If possible, they get a sixth less than the others.
struct Shape {
  u32 levels, rows, columns;
  u32 owners;  ///< ranks that own lines; the others idle
  u32 ranks_per_device;

  MESHPOST_FN u32 lines() const { return rows * levels; }
  /// Lines from a point to the one in the next row.
  MESHPOST_FN u32 halo_lines() const { return halo * levels; }
  /// The elements from a point to the one in the next row.
  MESHPOST_FN u64 row_size() const { return static_cast<u64>(levels) * columns; }
  MESHPOST_FN u32 first_line(u32 owner) const {
    if (owner == owners) return lines();
    u32 const first = owner / ranks_per_device * ranks_per_device;  // of that device
    u32 const count = owners - first < ranks_per_device ? owners - first : ranks_per_device;
    u32 const begin = share(first) * levels, all = share(first + count) * levels - begin;
    u32 const place = owner - first, whole = 6 * count - 2;  // sixths of shares
    bool const less =
        owners > ranks_per_device && count > 2 && static_cast<u64>(all) * 5 / whole >= halo_lines();
    u64 const before = less ? (place == 0 ? 0 : 6 * place - 1) : place;
    return begin + static_cast<u32>(all * before / (less ? whole : count));
  }
  /// The line at which an owner's part begins. The part is its lines and the halo, within the
  /// field.
  MESHPOST_FN u32 part_line(u32 owner) const {
    u32 const first = first_line(owner);
    return first > halo_lines() ? first - halo_lines() : 0;
  }

 private:
  /// The first row of the device whose first rank is `owner`.
  MESHPOST_FN u32 share(u32 owner) const {
    return static_cast<u32>(static_cast<u64>(rows) * owner / owners);
  }
};

/// Threads of a rank on a GPU: as many as fit, because only many loads in flight use the whole
/// memory bandwidth. CPU devices take their default, one.
inline constexpr int gpu_threads = 1024;

/// The parts of all ranks. The parts of a device share one block and overlap by the halo, so that
/// neighbours there see each other's rows.
inline std::vector<meshpost::Extent> parts(Shape const& shape, u32 ranks) {
  u64 const size = shape.columns;
  std::vector<meshpost::Extent> all(ranks);
  for (u32 r = 0; r < shape.owners; ++r) {
    u32 const block = shape.part_line(r / shape.ranks_per_device * shape.ranks_per_device);
    u32 const last = std::min(shape.first_line(r + 1) + shape.halo_lines(), shape.lines());
    all[r] = {(shape.part_line(r) - block) * size, (last - shape.part_line(r)) * size};
  }
  return all;
}

/// Horizontal diffusion of COSMO, as in GridTools' example horizontal_diffusion: lap = 4u -
/// neighbours; fluxes along columns (x) and rows (y), set to 0 where they go up the gradient; out =
/// u - c (differences of fluxes). `sign` -1 negates lap, which is COSMO's own sign. The outer two
/// rows and columns keep their values.
template <class Real>
struct Scheme {
  Shape shape;
  Real sign;

  /// The new value at `u`, a point of `row` and `column`; rows are `down` elements apart.
  MESHPOST_FN Real next(Real const* u, u32 row, u32 column, u64 down) const {
    bool const inside = is_inside(row) && column >= halo && column < shape.columns - halo;
    return inside ? next_inside(u, static_cast<long long>(down)) : *u;
  }

  /// The new values of four points side by side, from `u` on, which is aligned. Each value is
  /// loaded once.
  MESHPOST_FN Four<Real> next_four(Real const* u, u32 row, u32 column, u64 down) const {
    auto const old = Four(u);
    if (!is_inside(row)) return old;
    auto const d = static_cast<long long>(down);
    // Rows from two above to two below; at the ends of the middle three, the points beside.
    auto const above2 = Four(u - 2 * d), above = Four(u - d), below = Four(u + d),
               below2 = Four(u + 2 * d);
    Real const middle[8] = {u[-2], u[-1], old[0], old[1], old[2], old[3], u[4], u[5]};
    Real const upper[6] = {u[-d - 1], above[0], above[1], above[2], above[3], u[-d + 4]};
    Real const lower[6] = {u[d - 1], below[0], below[1], below[2], below[3], u[d + 4]};
    auto const lap = [&](Real here, Real west, Real east, Real south, Real north) {
      return sign * (Real(4) * here - ((west + east) + (south + north)));
    };
    Real laps[6];  // of the row, with a point beside at each end
    for (u32 k = 0; k < 6; ++k)
      laps[k] = lap(middle[k + 1], middle[k], middle[k + 2], lower[k], upper[k]);
    Real east[5];  // fluxes between neighbours
    for (u32 k = 0; k < 5; ++k) east[k] = flux(laps[k], laps[k + 1], middle[k + 2] - middle[k + 1]);
    Four<Real> next;
    for (u32 k = 0; k < 4; ++k) {
      Real const lap_below = lap(below[k], lower[k], lower[k + 2], below2[k], old[k]);
      Real const lap_above = lap(above[k], upper[k], upper[k + 2], old[k], above2[k]);
      Real const to_below = flux(laps[k + 1], lap_below, below[k] - old[k]);
      Real const from_above = flux(lap_above, laps[k + 1], old[k] - above[k]);
      Real const value = old[k] - Real(0.025) * ((east[k + 1] - east[k]) + (to_below - from_above));
      bool const inside = column + k >= halo && column + k < shape.columns - halo;
      next[k] = inside ? value : old[k];
    }
    return next;
  }

  /// All points of lines `begin` to `end`, by a rank's threads; `in` and `out` are those of the
  /// first one. A function by itself, which is not inlined: then it has all registers of a thread.
  static MESHPOST_COLD void next_lines(Scheme const scheme, u32 thread, u32 threads, u32 begin,
                                       u32 end, Real const* in, Real* out) {
    u32 const columns = scheme.shape.columns, levels = scheme.shape.levels;
    u64 const down = scheme.shape.row_size();
    if (threads == 1) {
      for (u32 line = begin; line < end; ++line) {
        u64 const at = u64{line - begin} * columns;
        scheme.next_line(in + at, out + at, line / levels);
      }
    } else if (columns % 4 == 0) {
      u32 const fours = columns / 4, count = (end - begin) * fours;
      for (u32 i = thread; i < count; i += threads) {
        u32 const line = i / fours, column = 4 * (i - line * fours);
        u64 const at = u64{4} * i;
        scheme.next_four(in + at, (begin + line) / levels, column, down).store(out + at);
      }
    } else {
      for (u64 i = thread; i < u64{end - begin} * columns; i += threads) {
        u32 const line = static_cast<u32>(i / columns), column = static_cast<u32>(i % columns);
        out[i] = scheme.next(in + i, (begin + line) / levels, column, down);
      }
    }
  }

 private:
  MESHPOST_FN bool is_inside(u32 row) const { return row >= halo && row < shape.rows - halo; }

  /// One line, by one thread: loops that a compiler makes vector instructions of.
  MESHPOST_FN void next_line(Real const* in, Real* __restrict out, u32 row) const {
    u32 const columns = shape.columns;
    auto const down = static_cast<long long>(shape.row_size());
    u32 const begin = is_inside(row) ? halo : columns, end = columns - halo;
    for (u32 i = 0; i < begin; ++i) out[i] = in[i];
    for (u32 i = begin; i < end; ++i) out[i] = next_inside(in + i, down);
    for (u32 i = end; i < columns; ++i) out[i] = in[i];
  }

  static MESHPOST_FN Real flux(Real here, Real there, Real difference) {
    Real const f = there - here;
    return f * difference > Real(0) ? Real(0) : f;
  }

  MESHPOST_FN Real next_inside(Real const* u, long long d) const {
    auto const lap = [&](Real const* p) {
      return sign * (Real(4) * p[0] - ((p[-1] + p[1]) + (p[d] + p[-d])));
    };
    Real const middle = lap(u);
    Real const east = flux(middle, lap(u + 1), u[1] - u[0]);
    Real const west = flux(lap(u - 1), middle, u[0] - u[-1]);
    Real const north = flux(middle, lap(u + d), u[d] - u[0]);
    Real const south = flux(lap(u - d), middle, u[0] - u[-d]);
    return u[0] - Real(0.025) * ((east - west) + (north - south));
  }
};

/// One kernel for all steps.
///
/// Why no rank reads memory that is being written: Step n reads field n % 2 and writes the other.
/// Before step n, a rank has consumed both neighbours' notifications of step n - 1. Each neighbour
/// sends it after its own step n - 1. So it has read all of field (n - 1) % 2, which step n
/// overwrites. This holds in shared memory of one device and in the halo that a put fills. And its
/// rows of field n % 2 are there. Both neighbours raise one counter of the field that they wrote. A
/// count can't be of a later step: a neighbour raises that counter again in step n + 2, behind my
/// notification of step n + 1, which I send when I have consumed both of step n.
template <class Real>
struct Diffusion {
  static constexpr int max_threads = gpu_threads;

  meshpost::Window<Real> fields[2];  // parts are a rank's lines and the halo, within the field
  Scheme<Real> scheme;
  u32 first_step, steps;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    auto const& shape = scheme.shape;
    u32 const me = self.id();
    if (me >= shape.owners) return;
    Lines const lines{shape.first_line(me), shape.first_line(me + 1), shape.part_line(me),
                      me > 0 ? shape.part_line(me - 1) : 0,
                      me + 1 < shape.owners ? shape.part_line(me + 1) : 0};
    // In scratch, because all threads would keep the same values.
    auto* const messages = self.scratch<Messages>(fields_count).data();
    for (u32 field = 0; field < fields_count; ++field) {
      Messages const all = prepare(self, fields[field], lines);
      if (self.thread() == 0) messages[field] = all;
    }
    self.sync();
    u64 const begin = u64{lines.begin - lines.base} * shape.columns;
    u32 now = first_step % 2;
    Real *in = fields[now].local(self).data() + begin,
         *out = fields[1 - now].local(self).data() + begin;
    for (u32 step = 0; step < steps; ++step) {
      Scheme<Real>::next_lines(scheme, self.thread(), self.threads(), lines.begin, lines.end, in,
                               out);
      now = 1 - now;
      tell_neighbours(self, messages[now]);
      Real* const last = in;
      in = out, out = last;
    }
  }

  /// Bytes of scratch of each rank.
  static constexpr meshpost::Bytes scratch_size() { return {fields_count * sizeof(Messages)}; }

 private:
  static constexpr u32 fields_count = 2;

  /// A rank's own lines, and the first lines of its part and of its neighbours' parts.
  struct Lines {
    u32 begin, end, base, before, after;
  };

  /// A rank's messages to its neighbours when it has written a field, and its wait for theirs.
  struct Messages {
    meshpost::PreparedPut before, after;
    meshpost::PreparedWait both;
  };
  MESHPOST_FN Messages prepare(meshpost::Rank& self, meshpost::Window<Real> const& field,
                               Lines const& lines) const {
    using meshpost::RankId, meshpost::Tag;
    auto const mine = field.local(self);
    u64 const size = scheme.shape.columns;
    u32 const me = self.id(), sent = scheme.shape.halo_lines();
    bool const before = has_before(me), after = has_after(me);
    Tag const written{0};
    // On one device source and target are the same shared rows: then the put copies nothing and
    // only notifies.
    Messages all;
    if (before)
      all.before = self.prepare_put_notify(
          field.at(RankId{me - 1}, (lines.begin - lines.before) * size),
          mine.subspan((lines.begin - lines.base) * size, sent * size), written);
    if (after)
      all.after = self.prepare_put_notify(
          field.at(RankId{me + 1}, (lines.end - sent - lines.after) * size),
          mine.subspan((lines.end - sent - lines.base) * size, sent * size), written);
    if (before || after)
      all.both = self.prepare_wait(field, written, u32{before} + u32{after},
                                   RankId{before ? me - 1 : me + 1});
    return all;
  }
  MESHPOST_FN bool has_before(u32 me) const { return me > 0; }
  MESHPOST_FN bool has_after(u32 me) const { return me + 1 < scheme.shape.owners; }

  MESHPOST_FN void tell_neighbours(meshpost::Rank& self, Messages const& messages) const {
    u32 const me = self.id();
    bool const before = has_before(me), after = has_after(me);
    if (before) self.put_notify(messages.before);
    if (after) self.put_notify(messages.after);
    if (before || after) self.wait(messages.both);
    else self.sync();  // nothing else synchronizes the threads
  }
};

template <class Real>
meshpost::Launch launch_on(meshpost::World const& world) {
  auto const& devices = world.devices();  // of this process: none if other processes have all
  bool const gpu = !devices.empty() && devices.front()->kind() == "cuda";
  return {.threads = {gpu ? static_cast<u32>(gpu_threads) : 0u, 1, 1},
          .scratch = Diffusion<Real>::scratch_size()};
}

}  // namespace diffusion
