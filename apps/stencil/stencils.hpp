#pragma once
#include <meshpost/meshpost.hpp>

#include "common/four.hpp"

// The arithmetic of both versions, line by line. A line is the points of one row and one level.
//
// In memory a field is [row][level][column], so that the row that a neighbour needs is one piece,
// and that of some levels, too. Fields of a device have one row more at either end: the halo.

namespace stencil {

using meshpost::u32;
using meshpost::u64;
using meshpost::apps::Four;

/// The whole grid, and how it is cut: into slabs of whole rows, one for each device.
struct Grid {
  u32 levels, rows, columns;  ///< rows of all devices
  u32 devices;

  MESHPOST_FN u32 first_row(u32 device) const {
    return static_cast<u32>(u64{rows} * device / devices);
  }
  MESHPOST_FN u64 row_size() const { return u64{levels} * columns; }
  /// Elements of one field of a device, with the halo; the same for all devices.
  MESHPOST_FN u64 field_size() const {
    return (u64{rows + devices - 1} / devices + 2) * row_size();
  }
  /// Of a row of the grid in a field of a device. Rows of the halo, too: `row` may be -1.
  MESHPOST_FN u64 offset(u32 device, long long row) const {
    return static_cast<u64>(row - first_row(device) + 1) * row_size();
  }
};

/// The fields of a device, in the order of its part of the window.
enum Field : u32 { u0, u1, laplacian, flux_x, flux_y, fields };

enum class Stage { laplacian, fluxes, update };

/// Rows and levels that are worked on together.
struct Range {
  u32 first_row, end_row, first_level, end_level;
};

/// Threads that share a range: each takes a part of every `workers`-th line, or all of it if
/// `lanes` is 1.
struct Threads {
  u32 worker, workers, lane, lanes;

  /// Warps take lines, and their threads points, if lines consist of fours. Otherwise each thread
  /// takes whole lines, which a compiler can make vector instructions of.
  static MESHPOST_FN Threads of(Grid const& grid, u32 thread, u32 threads) {
    constexpr u32 warp = 32;
    if (threads % warp != 0 || grid.columns % 4 != 0) return {thread, threads, 0, 1};
    return {thread / warp, threads / warp, thread % warp, warp};
  }
};

/// Where a piece of the fields lies: some rows and levels, in memory of the device or, on a GPU, in
/// a rank's scratch. Rows beyond it are in the device's memory, as are copies of the rows that
/// others read.
template <class Real>
struct View {
  Real *u, *next, *lap, *fx, *fy;  ///< of the first row and level; `next` may be `u`
  Range rows;
  u32 levels;  ///< from one row to the next
  // Rows beyond, from the first level on.
  Real const *u_before, *u_after, *lap_after, *fy_before;
  // Rows that others read, from the first level on; null: they read the fields themselves.
  Real *first_lap, *last_fy, *first_next, *last_next;
};

/// Three dependent stencils, a simplified horizontal diffusion:
///   lap = ((u[x-1] + u[x+1]) + (u[y-1] + u[y+1])) - 4 u
///   fx  = lap[x+1] - lap,  fy = lap[y+1] - lap
///   new = u - 0.03 ((fx - fx[x-1]) + (fy - fy[y-1]))
/// It is stable, as 0.03 is less than 2/64: 64 is the largest factor of the operator on u.
/// The outer two rows and columns keep their values. lap is 0 in the outermost row and column.
template <class Real>
struct Stencils {
  Grid grid;
  View<Real> view;

  MESHPOST_FN void do_laplacian(Range const& range, Threads const& threads) const {
    each_line(range, threads, [&](u32 row, u32 at, u32 level, u32 down) {
      Real const* const u = view.u + at;
      Real const* const above = row == view.rows.first_row ? view.u_before + level : u - down;
      Real const* const below = row + 1 == view.rows.end_row ? view.u_after + level : u + down;
      Real* const lap = view.lap + at;
      Real* const copy =
          row == view.rows.first_row && view.first_lap ? view.first_lap + level : nullptr;
      bool const inside = row >= 1 && row + 1 < grid.rows;
      if (threads.lanes > 1) {
        each_four(threads, [=, columns = grid.columns](u32 i) {
          auto const middle = Four(u + i), north = Four(above + i), south = Four(below + i);
          Real const west = i > 0 ? u[i - 1] : Real(0), east = i + 4 < columns ? u[i + 4] : Real(0);
          Four<Real> value;
          for (u32 k = 0; k < 4; ++k)
            value[k] = laplacian_of(middle[k], k > 0 ? middle[k - 1] : west,
                                    k < 3 ? middle[k + 1] : east, north[k], south[k]);
          if (i == 0 || !inside) value[0] = 0;
          if (i + 4 == columns || !inside) value[3] = 0;
          if (!inside) value[1] = value[2] = 0;
          value.store(lap + i);
          if (copy) value.store(copy + i);
        });
        return;
      }
      each_point(
          inside ? 1 : grid.columns, 1,
          [=](Index i) { lap[i] = laplacian_of(u[i], u[i - 1], u[i + 1], above[i], below[i]); },
          [=](Index i) { lap[i] = Real(0); });
      copy_line(lap, copy);
    });
  }

  MESHPOST_FN void do_fluxes(Range const& range, Threads const& threads) const {
    each_line(range, threads, [&](u32 row, u32 at, u32 level, u32 down) {
      Real const* const lap = view.lap + at;
      Real const* const below = row + 1 == view.rows.end_row ? view.lap_after + level : lap + down;
      Real *const fx = view.fx + at, *const fy = view.fy + at;
      Real* const copy =
          row + 1 == view.rows.end_row && view.last_fy ? view.last_fy + level : nullptr;
      bool const inside = row >= 1 && row + 2 < grid.rows;
      if (threads.lanes > 1) {
        each_four(threads, [=, columns = grid.columns](u32 i) {
          auto const middle = Four(lap + i), south = Four(below + i);
          Real const east = i + 4 < columns ? lap[i + 4] : Real(0);
          Four<Real> x, y;
          for (u32 k = 0; k < 4; ++k) {
            bool const edge = !inside || i + k == 0 || i + k + 1 == columns;
            x[k] = edge ? Real(0) : (k < 3 ? middle[k + 1] : east) - middle[k];
            y[k] = edge ? Real(0) : south[k] - middle[k];
          }
          x.store(fx + i);
          y.store(fy + i);
          if (copy) y.store(copy + i);
        });
        return;
      }
      each_point(
          inside ? 1 : grid.columns, 1,
          [=](Index i) {
            fx[i] = lap[i + 1] - lap[i];
            fy[i] = below[i] - lap[i];
          },
          [=](Index i) { fx[i] = fy[i] = Real(0); });
      copy_line(fy, copy);
    });
  }

  MESHPOST_FN void do_update(Range const& range, Threads const& threads) const {
    each_line(range, threads, [&](u32 row, u32 at, u32 level, u32 down) {
      Real const *const u = view.u + at, *const fx = view.fx + at, *const fy = view.fy + at;
      Real const* const above = row == view.rows.first_row ? view.fy_before + level : fy - down;
      Real* const next = view.next + at;
      Real* const copy_first =
          row == view.rows.first_row && view.first_next ? view.first_next + level : nullptr;
      Real* const copy_last =
          row + 1 == view.rows.end_row && view.last_next ? view.last_next + level : nullptr;
      bool const inside = row >= 2 && row + 2 < grid.rows;
      if (threads.lanes > 1) {
        each_four(threads, [=, columns = grid.columns](u32 i) {
          auto const old = Four(u + i), x = Four(fx + i), y = Four(fy + i), north = Four(above + i);
          Real const west = i > 0 ? fx[i - 1] : Real(0);
          Four<Real> value;
          for (u32 k = 0; k < 4; ++k) {
            bool const edge = !inside || i + k < 2 || i + k + 2 >= columns;
            value[k] =
                edge ? old[k] : updated(old[k], x[k], k > 0 ? x[k - 1] : west, y[k], north[k]);
          }
          value.store(next + i);
          if (copy_first) value.store(copy_first + i);
          if (copy_last) value.store(copy_last + i);
        });
        return;
      }
      each_point(
          inside ? 2 : grid.columns, 2,
          [=](Index i) { next[i] = updated(u[i], fx[i], fx[i - 1], fy[i], above[i]); },
          [=](Index i) { next[i] = u[i]; });
      copy_line(next, copy_first);
      copy_line(next, copy_last);
    });
  }

  template <Stage stage>
  MESHPOST_FN void run(Range const& range, Threads const& threads) const {
    if constexpr (stage == Stage::laplacian) do_laplacian(range, threads);
    else if constexpr (stage == Stage::fluxes) do_fluxes(range, threads);
    else do_update(range, threads);
  }

 private:
  /// Calls work(row, offset of the line in the view, of its level in a row, of the next row).
  template <class Work>
  MESHPOST_FN void each_line(Range const& range, Threads const& threads, Work const& work) const {
    u32 const levels = range.end_level - range.first_level;
    u32 const lines = (range.end_row - range.first_row) * levels;
    u32 const down = view.levels * grid.columns;
    for (u32 line = threads.worker; line < lines; line += threads.workers) {
      u32 const row = range.first_row + line / levels;
      u32 const offset = (range.first_level + line % levels - view.rows.first_level) * grid.columns;
      work(row, (row - view.rows.first_row) * down + offset, offset, down);
    }
  }

  // On CPU devices indices have 64 bits: those of 32 bits wrap, so a compiler can't take the points
  // beside each other from one vector. On GPUs they would cost registers.
#if defined(__CUDA_ARCH__)
  using Index = u32;
#else
  using Index = u64;
#endif

  static MESHPOST_FN Real laplacian_of(Real u, Real west, Real east, Real north, Real south) {
    return ((west + east) + (north + south)) - Real(4) * u;
  }
  static MESHPOST_FN Real updated(Real u, Real fx, Real fx_west, Real fy, Real fy_north) {
    return u - Real(0.03) * ((fx - fx_west) + (fy - fy_north));
  }

  MESHPOST_FN void copy_line(Real const* line, Real* copy) const {
    if (copy == nullptr) return;
    for (u32 i = 0; i < grid.columns; ++i) copy[i] = line[i];
  }

  /// By one thread. Points from `begin` on, but not the last `after`, are inside; `begin` is the
  /// number of columns if none is.
  template <class Inside, class Edge>
  MESHPOST_FN void each_point(u32 begin, u32 after, Inside const& inside, Edge const& edge) const {
    u32 const columns = grid.columns, end = begin < columns ? columns - after : columns;
    for (Index i = 0; i < begin; ++i) edge(i);
#if defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC ivdep  // fields do not overlap
#endif
    for (Index i = begin; i < end; ++i) inside(i);
    for (Index i = end; i < columns; ++i) edge(i);
  }

  /// By a warp: each thread takes four points side by side.
  template <class Work>
  MESHPOST_FN void each_four(Threads const& threads, Work const& work) const {
    for (u32 i = 4 * threads.lane; i < grid.columns; i += 4 * threads.lanes) work(i);
  }
};

/// A piece of the fields in memory of the device, which is [row][level][column] with all levels.
/// `step` says which field is the old u.
template <class Real>
MESHPOST_FN View<Real> view_of_device(Grid const& grid, u32 device, Real* memory, u32 step,
                                      Range const& rows) {
  u64 const down = grid.row_size();
  auto const at = [&](u32 field) {
    return memory + field * grid.field_size() + grid.offset(device, rows.first_row) +
           u64{rows.first_level} * grid.columns;
  };
  Real* const u = at(u0 + step % 2);
  u64 const behind = u64{rows.end_row - rows.first_row} * down;
  return {u,
          at(u1 - step % 2),
          at(laplacian),
          at(flux_x),
          at(flux_y),
          rows,
          grid.levels,
          u - down,
          u + behind,
          at(laplacian) + behind,
          at(flux_y) - down,
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

}  // namespace stencil
