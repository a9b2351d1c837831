#pragma once
#include <meshpost/meshpost.hpp>

// The arithmetic of both versions, line by line. A line is the points of one row and one level.
//
// In memory a field is [row][level][column], so that the row that a neighbour needs is one piece,
// and that of some levels, too. Fields of a device have one row more at either end: the halo.

namespace stencil {

using meshpost::u32;
using meshpost::u64;

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

/// Threads that share a range: each takes every `lanes`-th point of every `workers`-th line.
struct Threads {
  u64 worker, workers;
  u32 lane, lanes;

  /// Warps take lines, and their threads points. Otherwise each thread takes whole lines, which a
  /// compiler can make vector instructions of.
  static MESHPOST_FN Threads of(u64 thread, u64 threads) {
    constexpr u32 warp = 32;
    if (threads % warp != 0) return {thread, threads, 0, 1};
    return {thread / warp, threads / warp, static_cast<u32>(thread % warp), warp};
  }
};

/// Three dependent stencils, a simplified horizontal diffusion:
///   lap = 4 u - (u[x-1] + u[x+1] + u[y-1] + u[y+1])
///   fx  = lap[x+1] - lap,  fy = lap[y+1] - lap
///   new = u - 0.03 ((fx - fx[x-1]) + (fy - fy[y-1]))
/// The outer two rows and columns keep their values. lap is 0 in the outermost row and column.
template <class Real>
struct Stencils {
  Grid grid;
  u32 device;
  Real* memory;  ///< all fields of the device

  MESHPOST_FN void do_laplacian(u32 step, Range const& range, Threads const& threads) const {
    auto const down = static_cast<long long>(grid.row_size());
    each_line(range, threads, [&](u32 row, u64 at) {
      Real const* const u = field(u0 + step % 2) + at;
      Real* const lap = field(laplacian) + at;
      bool const inside = row >= 1 && row + 1 < grid.rows;
      points(
          threads, inside ? 1 : grid.columns, 1,
          [=](u32 i) {
            lap[i] = Real(4) * u[i] - ((u[i - 1] + u[i + 1]) + (u[i - down] + u[i + down]));
          },
          [=](u32 i) { lap[i] = Real(0); });
    });
  }

  MESHPOST_FN void do_fluxes(u32, Range const& range, Threads const& threads) const {
    auto const down = static_cast<long long>(grid.row_size());
    each_line(range, threads, [&](u32 row, u64 at) {
      Real const* const lap = field(laplacian) + at;
      Real *const fx = field(flux_x) + at, *const fy = field(flux_y) + at;
      bool const inside = row >= 1 && row + 2 < grid.rows;
      points(
          threads, inside ? 1 : grid.columns, 1,
          [=](u32 i) {
            fx[i] = lap[i + 1] - lap[i];
            fy[i] = lap[i + down] - lap[i];
          },
          [=](u32 i) { fx[i] = fy[i] = Real(0); });
    });
  }

  MESHPOST_FN void do_update(u32 step, Range const& range, Threads const& threads) const {
    auto const down = static_cast<long long>(grid.row_size());
    each_line(range, threads, [&](u32 row, u64 at) {
      Real const* const u = field(u0 + step % 2) + at;
      Real* const next = field(u1 - step % 2) + at;
      Real const *const fx = field(flux_x) + at, *const fy = field(flux_y) + at;
      bool const inside = row >= 2 && row + 2 < grid.rows;
      points(
          threads, inside ? 2 : grid.columns, 2,
          [=](u32 i) {
            next[i] = u[i] - Real(0.03) * ((fx[i] - fx[i - 1]) + (fy[i] - fy[i - down]));
          },
          [=](u32 i) { next[i] = u[i]; });
    });
  }

  template <Stage stage>
  MESHPOST_FN void run(u32 step, Range const& range, Threads const& threads) const {
    if constexpr (stage == Stage::laplacian) do_laplacian(step, range, threads);
    else if constexpr (stage == Stage::fluxes) do_fluxes(step, range, threads);
    else do_update(step, range, threads);
  }

  MESHPOST_FN Real* field(u32 number) const { return memory + number * grid.field_size(); }

 private:
  template <class Work>
  MESHPOST_FN void each_line(Range const& range, Threads const& threads, Work const& work) const {
    u32 const levels = range.end_level - range.first_level;
    u64 const lines = u64{range.end_row - range.first_row} * levels;
    for (u64 line = threads.worker; line < lines; line += threads.workers) {
      u32 const row = range.first_row + static_cast<u32>(line / levels);
      u32 const level = range.first_level + static_cast<u32>(line % levels);
      work(row, grid.offset(device, row) + u64{level} * grid.columns);
    }
  }

  /// Points from `begin` on, but not the last `after`, are inside; `begin` is the number of columns
  /// if none is.
  template <class Inside, class Edge>
  MESHPOST_FN void points(Threads const& threads, u32 begin, u32 after, Inside const& inside,
                          Edge const& edge) const {
    u32 const columns = grid.columns;
    u32 const end = begin < columns ? columns - after : columns;
    if (threads.lanes == 1) {
      for (u32 i = 0; i < begin; ++i) edge(i);
#if defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC ivdep  // fields do not overlap
#endif
      for (u32 i = begin; i < end; ++i) inside(i);
      for (u32 i = end; i < columns; ++i) edge(i);
      return;
    }
    for (u32 i = threads.lane; i < columns; i += threads.lanes) {
      if (i >= begin && i < end) inside(i);
      else edge(i);
    }
  }
};

}  // namespace stencil
