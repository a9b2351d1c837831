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

/// The whole field and how it is cut: rows into slabs of whole rows, in the order of the ranks. In
/// memory a field is [row][level][column], so the two rows that a neighbour needs are one piece.
struct Shape {
  u32 levels, rows, columns;
  u32 owners;  ///< ranks that own rows; the others idle
  u32 ranks_per_device;

  MESHPOST_FN u64 row_size() const { return static_cast<u64>(levels) * columns; }
  /// Each device has its share. Its ranks get equally many rows, and the remaining rows are spread.
  /// If possible, the first and last rank get none of these: they send rows to other devices.
  MESHPOST_FN u32 first_row(u32 owner) const {
    if (owner == owners) return rows;
    u32 const first = owner / ranks_per_device * ranks_per_device, place = owner - first;
    u32 const count =
        owners - first < ranks_per_device ? owners - first : ranks_per_device;  // of that device
    u32 const begin = share(first), all = share(first + count) - begin, over = all % count;
    bool const ends = over + 2 > count;  // they get some, too
    u32 const takers = ends ? count : count - 2, before = ends || place == 0 ? place : place - 1;
    return begin + place * (all / count) + (takers == 0 ? 0 : over * before / takers);
  }
  /// The row at which an owner's part begins. The part is its rows and the halo, within the field.
  MESHPOST_FN u32 part_row(u32 owner) const {
    u32 const first = first_row(owner);
    return first > halo ? first - halo : 0;
  }

 private:
  MESHPOST_FN u32 share(u32 owner) const {
    return static_cast<u32>(static_cast<u64>(rows) * owner / owners);
  }
};

/// Threads of a rank on a GPU: as many as fit, because only many loads in flight use the whole
/// memory bandwidth. CPU devices take their default, one.
inline constexpr int gpu_threads = 1024;

inline meshpost::Launch launch_on(meshpost::World const& world) {
  auto const& devices = world.devices();  // of this process: none if other processes have all
  bool const gpu = !devices.empty() && devices.front()->kind() == "cuda";
  return {.threads = {gpu ? static_cast<u32>(gpu_threads) : 0u, 1, 1}};
}

/// The parts of all ranks. The parts of a device share one block and overlap by the halo, so that
/// neighbours there see each other's rows.
inline std::vector<meshpost::Extent> parts(Shape const& shape, u32 ranks) {
  u64 const size = shape.row_size();
  std::vector<meshpost::Extent> all(ranks);
  for (u32 r = 0; r < shape.owners; ++r) {
    u32 const block_row = shape.part_row(r / shape.ranks_per_device * shape.ranks_per_device);
    u32 const last = std::min(shape.first_row(r + 1) + halo, shape.rows);
    all[r] = {(shape.part_row(r) - block_row) * size, (last - shape.part_row(r)) * size};
  }
  return all;
}

/// Horizontal diffusion of COSMO, as in GridTools' example horizontal_diffusion: lap = 4u -
/// neighbours; fluxes along columns (x) and rows (y), set to 0 where they go up the gradient; out =
/// u - c (differences of fluxes). `sign` -1 negates lap, which is COSMO's own sign. The outer two
/// rows and columns keep their values.
///
/// Why no rank reads memory that is being written: Step n reads field n % 2 and writes the other.
/// Before step n, a rank has consumed both neighbours' notifications of step n - 1. Each neighbour
/// sends it after its own step n - 1. So it has read all of field (n - 1) % 2, which step n
/// overwrites. This holds in shared memory of one device and in the halo that a put fills. And its
/// rows of field n % 2 are there. There is a tag for each direction: a fast neighbour can't count
/// for the other one. There are two parities of tags: a neighbour that is a step ahead can't count
/// for this step.
template <class Real>
struct Diffusion {
  static constexpr int max_threads = gpu_threads;

  meshpost::Window<Real> fields[2];  // parts are a rank's rows and the halo, within the field
  Shape shape;
  u32 first_step, steps;
  Real sign;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    u32 const me = self.id();
    if (me >= shape.owners) return;
    Rows const rows{shape.first_row(me), shape.first_row(me + 1), shape.part_row(me),
                    me > 0 ? shape.part_row(me - 1) : 0,
                    me + 1 < shape.owners ? shape.part_row(me + 1) : 0};
    for (u32 step = first_step; step < first_step + steps; ++step) {
      auto const in = fields[step % 2].local(self), out = fields[1 - step % 2].local(self);
      u64 const size = shape.row_size();
      for (u32 row = rows.begin; row < rows.end; ++row) {
        u64 const begin = (row - rows.base) * size;
        if (self.threads() == 1) next_row(in.data() + begin, out.data() + begin, row);
        else if (shape.columns % 4 == 0)
          self.each(size / 4, [&](u64 i) {
            next_four(in.data() + begin + 4 * i, row, 4 * static_cast<u32>(i) % shape.columns, size)
                .store(out.data() + begin + 4 * i);
          });
        else
          self.each(size, [&](u64 i) {
            out[begin + i] =
                next(in.data() + begin + i, row, static_cast<u32>(i) % shape.columns, size);
          });
      }
      self.sync();  // without neighbours nothing else synchronizes the threads
      tell_neighbours(self, step, rows);
    }
  }

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

 private:
  /// A rank's own rows, and the first rows of its part and of its neighbours' parts.
  struct Rows {
    u32 begin, end, base, before, after;
  };

  MESHPOST_FN bool is_inside(u32 row) const { return row >= halo && row < shape.rows - halo; }

  /// All levels of a row, by one thread: loops that a compiler makes vector instructions of.
  MESHPOST_FN void next_row(Real const* in, Real* out, u32 row) const {
    u32 const columns = shape.columns;
    auto const down = static_cast<long long>(shape.row_size());
    for (u32 level = 0; level < shape.levels; ++level) {
      Real const* const from = in + u64{level} * columns;
      Real* __restrict const to = out + u64{level} * columns;
      u32 const begin = is_inside(row) ? halo : columns, end = columns - halo;
      for (u32 i = 0; i < begin; ++i) to[i] = from[i];
      for (u32 i = begin; i < end; ++i) to[i] = next_inside(from + i, down);
      for (u32 i = end; i < columns; ++i) to[i] = from[i];
    }
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

  MESHPOST_FN void tell_neighbours(meshpost::Rank& self, u32 step, Rows const& rows) const {
    using meshpost::RankId, meshpost::Tag;
    auto const& window = fields[1 - step % 2];
    auto const mine = window.local(self);
    u64 const size = shape.row_size();
    u32 const me = self.id(), parity = step % 2;
    Tag const up{2 * parity}, down{2 * parity + 1};
    // On one device source and target are the same shared rows: then the put copies nothing and
    // only notifies.
    if (me > 0)
      self.put_notify(window.at(RankId{me - 1}, (rows.begin - rows.before) * size),
                      mine.subspan((rows.begin - rows.base) * size, halo * size), up);
    if (me + 1 < shape.owners)
      self.put_notify(window.at(RankId{me + 1}, (rows.end - halo - rows.after) * size),
                      mine.subspan((rows.end - halo - rows.base) * size, halo * size), down);
    if (me > 0) self.wait(window, down, 1, RankId{me - 1});
    if (me + 1 < shape.owners) self.wait(window, up, 1, RankId{me + 1});
  }
};

}  // namespace diffusion
