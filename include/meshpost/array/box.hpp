#pragma once
#include "meshpost/base/strided.hpp"

// Cells and boxes of a regular grid: for the host and for kernels.

namespace meshpost {

/// A cell of a grid of up to three dimensions. x is the fastest in memory.
struct Cell {
  i64 x{}, y{}, z{};

  MESHPOST_FN constexpr i64& operator[](u32 dimension) {
    return dimension == 0 ? x : dimension == 1 ? y : z;
  }
  MESHPOST_FN constexpr i64 operator[](u32 dimension) const {
    return dimension == 0 ? x : dimension == 1 ? y : z;
  }
  MESHPOST_FN constexpr bool operator==(Cell const& other) const {
    return x == other.x && y == other.y && z == other.z;
  }
};

/// A number of cells at each side of a box, by dimension: widths of a halo, or how far a stencil
/// reaches.
struct Sides {
  u32 low[3]{}, high[3]{};

  /// `width` cells at each side.
  MESHPOST_FN static constexpr Sides all(u32 width) {
    return {{width, width, width}, {width, width, width}};
  }
  MESHPOST_FN constexpr bool operator==(Sides const& other) const {
    for (u32 d = 0; d < 3; ++d)
      if (low[d] != other.low[d] || high[d] != other.high[d]) return false;
    return true;
  }
};

/// The cells behind an end of a grid: there are none, or they are those of the other end, or the
/// mirrored ones, where the end is the mirror.
enum class Boundary : u8 { none, periodic, reflecting };

/// The cells from `begin` on, without `end`, in each dimension. It may leave the grid: halos do.
struct Box {
  Cell begin{}, end{};

  /// All cells of a grid.
  MESHPOST_FN static constexpr Box of(Extents3 grid) {
    return {{}, {static_cast<i64>(grid.x), static_cast<i64>(grid.y), static_cast<i64>(grid.z)}};
  }

  MESHPOST_FN constexpr bool empty() const {
    return end.x <= begin.x || end.y <= begin.y || end.z <= begin.z;
  }
  MESHPOST_FN constexpr u64 extent(u32 dimension) const {
    return empty() ? 0 : static_cast<u64>(end[dimension] - begin[dimension]);
  }
  MESHPOST_FN constexpr u64 cells() const { return extent(0) * extent(1) * extent(2); }
  MESHPOST_FN constexpr bool contains(Cell cell) const {
    for (u32 d = 0; d < 3; ++d)
      if (cell[d] < begin[d] || cell[d] >= end[d]) return false;
    return true;
  }
  /// True for an empty one, too.
  MESHPOST_FN constexpr bool contains(Box const& other) const {
    return other.empty() || intersect(other) == other;
  }
  MESHPOST_FN constexpr Box intersect(Box const& other) const {
    Box both;
    for (u32 d = 0; d < 3; ++d) {
      both.begin[d] = begin[d] > other.begin[d] ? begin[d] : other.begin[d];
      both.end[d] = end[d] < other.end[d] ? end[d] : other.end[d];
    }
    return both.empty() ? Box{} : both;
  }
  /// With so many more cells at its sides. An empty one stays empty.
  MESHPOST_FN constexpr Box grown(Sides const& sides) const {
    Box more = *this;
    for (u32 d = 0; d < 3 && !empty(); ++d)
      more.begin[d] -= sides.low[d], more.end[d] += sides.high[d];
    return more;
  }
  /// With so many cells less: the inner ones, which need no halo. It may become empty.
  MESHPOST_FN constexpr Box shrunk(Sides const& sides) const {
    Box less = *this;
    for (u32 d = 0; d < 3; ++d) less.begin[d] += sides.low[d], less.end[d] -= sides.high[d];
    return less.empty() ? Box{} : less;
  }

  /// Number of a cell in memory that holds the box, x fastest. The cell must be in it.
  MESHPOST_FN constexpr u64 place_of(Cell cell) const {
    return (static_cast<u64>(cell.z - begin.z) * extent(1) + static_cast<u64>(cell.y - begin.y)) *
               extent(0) +
           static_cast<u64>(cell.x - begin.x);
  }
  /// The way back. The place must be in the box.
  MESHPOST_FN constexpr Cell cell_at(u64 place) const {
    u64 const row = place / extent(0);
    return {begin.x + static_cast<i64>(place % extent(0)),
            begin.y + static_cast<i64>(row % extent(1)),
            begin.z + static_cast<i64>(row / extent(1))};
  }

  MESHPOST_FN constexpr bool operator==(Box const& other) const {
    return begin == other.begin && end == other.end;
  }
};

}  // namespace meshpost
