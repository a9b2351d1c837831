#pragma once
#include "meshpost/array/box.hpp"

#if !defined(__CUDACC_RTC__)
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace meshpost {

/// How a grid is cut into boxes.
struct CutOptions {
  /// Dimensions that may be cut. 1: slabs along the slowest in memory that has more than one cell,
  /// so that what neighbours exchange is consecutive; 2: the slowest two of these; 3: all.
  u32 dimensions = 3;
};

/// A regular grid that is cut into boxes, one for each part: they are disjoint and cover it. Cell
/// (x, y, z) has the global index (z * ny + y) * nx + x. A plain value, cheap to copy.
class Boxes {
 public:
  /// Boxes of equal size, as nearly as their layers allow. The parts are halved again and again.
  /// Each cut goes through the longest dimension of its box; of equally long ones, through the
  /// slowest in memory.
  /// \throws Error(bad_argument) for a grid without cells or with 2^62 or more, no parts, more
  /// parts than cells (with fewer dimensions: than layers), or no such number of dimensions
  static Boxes cut(Extents3 extents, u32 parts, CutOptions const& options = {});
  /// In proportion to shares, for example measured speeds, as nearly as the layers of cells allow.
  /// A part with a share above 0 has at least a cell. One with a share of 0 has an empty box.
  /// \throws as above, and Error(bad_argument) for a share that is negative, infinite or no number,
  /// or if the sum of the shares is 0 or infinite
  static Boxes cut(Extents3 extents, std::span<double const> shares,
                   CutOptions const& options = {});
  /// These boxes. Empty ones are parts without cells.
  /// \throws Error(bad_argument) for a grid as above; naming a box that leaves the grid, two that
  /// overlap, or a cell that is in none
  static Boxes of(Extents3 extents, std::vector<Box> boxes);

  Extents3 extents() const;
  Box grid() const { return Box::of(extents()); }  ///< all cells
  u32 parts() const;
  /// \throws Error(bad_argument) if there is no such part
  Box const& box(u32 part) const;
  /// \throws Error(bad_argument) if the cell is not in the grid
  u32 owner_of(Cell cell) const;
  /// Calls work(part) for all parts that have cells of `box`, in no order.
  void each_in(Box const& box, std::function<void(u32 part)> const& work) const;

  /// "8 x 8 x 4 cells in 2 boxes of 128"
  std::string describe() const;
  /// Equal for equal grids and boxes, and different for others, most likely.
  u64 fingerprint() const;
  bool operator==(Boxes const& other) const;

  struct State;  // of the library

 private:
  explicit Boxes(std::shared_ptr<State const> state) : state_(std::move(state)) {}
  std::shared_ptr<State const> state_;
};

}  // namespace meshpost
#endif
