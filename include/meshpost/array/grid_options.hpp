#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meshpost/array/boxes.hpp"
#include "meshpost/array/detail/grid_tiles.hpp"
#include "meshpost/array/plan.hpp"
#include "meshpost/rma/world.hpp"

// The settings of a grid, and its layout (array/grid.hpp).

namespace meshpost {

/// A grid, and how it is cut. Equal in all processes.
struct GridOptions {
  Extents3 extents{1, 1, 1};
  /// Cells of other parts, and beyond the grid's sides, that a scheme reads. A dimension of one
  /// cell has none.
  u32 halo = 1;
  std::optional<Sides> sides{};  ///< the same for each side, in place of `halo`
  bool corners = false;  ///< the scheme reads cells that differ in more than one dimension, too
  /// Beyond the grid's sides, by dimension: `none` keeps what Grid::fill() has stored there.
  std::array<Boundary, 3> boundary{};
  u32 fields = 2;      ///< at most 64
  u32 components = 1;  ///< values of each cell in a field, each kind in one piece
  /// Of the cells, by device of the World; measured_shares() has those by speed. Empty: equal.
  std::vector<double> shares{};
  CutOptions cut{};
  std::string name = "grid";  ///< for messages
};

/// How the steps are carried out. The results are equal to the bit.
enum class GridExecution : u32 {
  one_kernel,  ///< ranks of one kernel exchange halos, for all steps
  /// Streams do it, between plain kernels: a StreamEndpoint on each device, which the grid makes at
  /// the first such run, and keeps. A CPU device then uses one core.
  kernel_a_step
};

/// How Grid::run carries out its steps.
struct GridRun {
  GridExecution execution = GridExecution::one_kernel;
  /// Its number in GridTime. Unset: the one behind the last run of this grid; at first 0.
  std::optional<u64> first_step{};
  /// Looks for a value that is infinite or no number, in the field that the next step reads: behind
  /// steps whose number is a multiple of this, and behind the last one. 0: never.
  u64 check_every = 10;
  /// Fills GridResult::busy. The ranks of a device meet more often for it.
  bool measures = false;
  /// For one_kernel. Of it, kernel_a_step takes threads.x alone, for its blocks.
  Launch launch{};
};

/// The times of Grid::run.
struct GridResult {
  double seconds = 0;  ///< from the launch to the end of the last rank
  /// For each device of the World, the seconds in which it computed (GridRun::measures).
  std::vector<double> busy{};
};

namespace detail {

/// A grid without its values: the same for all types.
class GridLayout {
 public:
  /// Collective. \throws as Grid
  static GridLayout make(World const& world, GridOptions const& options);
  /// Not collective.
  GridLayout(World const& world, GridOptions options);

  GridOptions const& options() const { return options_; }
  Boxes const& boxes() const { return boxes_; }
  BoxHalo const& halo() const { return halo_; }
  Plan const& plan() const { return plan_; }
  u64 pitch() const { return pitch_; }  ///< elements of a field, in all parts
  Box frame(u32 part) const;
  u64 table_words(World const& world) const;  ///< of any part, at most
  /// Of a part of this process.
  std::vector<u64> table(World const& world, u32 part) const;
  void check_field(u32 field, char const* operation) const;
  /// `values`: of the grid's window. It may have been freed, and its World may be gone.
  void check_alive(WindowInfo const& values, char const* operation) const;
  void check_write(u32 field, u32 part, u64 values) const;
  /// `marks`: of all teams of these parts, from `first` on.
  /// \throws Error(kernel_failed) if one has found such a value
  void check_marks(u32 first, std::vector<std::vector<GridMark>> const& marks,
                   u64 check_every) const;
  /// True if the cell lies beyond a side whose cells keep what was stored there.
  bool is_fixed(Cell cell) const;

 private:
  GridOptions options_;
  Boxes boxes_;
  BoxHalo halo_;
  Plan plan_;
  u64 pitch_ = 0;
};
/// Does `work` in all processes. If it throws in some, all throw the error of the first of them.
/// Collective.
void grid_together(World const& world, std::string const& operation,
                   std::function<void()> const& work);

}  // namespace detail

}  // namespace meshpost
