#pragma once
#include "meshpost/array/detail/grid_kernel.hpp"

#if !defined(__CUDACC_RTC__)
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshpost/array/detail/grid_streams.hpp"
#include "meshpost/array/grid_options.hpp"

namespace meshpost {

/// A regular grid of one, two or three dimensions over all devices of a World, with fields of
/// values at its cells. The user gives a scheme, which computes a box of cells; the library cuts
/// the grid, keeps the halos in step, and overlaps their exchange with the cells that need none.
///
///     struct Heat {
///       double rate;
///       MESHPOST_FN void operator()(GridThreads const& threads, Box const& box,
///                                   GridFields<double> const& fields, GridTime at) const {
///         auto const u = fields.old(at.step % 2);
///         auto const next = fields[1 - at.step % 2];
///         threads.each(box, [&] (i64 x, i64 y, i64 z) {
///           double const change = u(x - 1, y, z) - 2 * u(x, y, z) + u(x + 1, y, z);
///           next(x, y, z) = u(x, y, z) + rate * change;
///         });
///       }
///     };
///
/// A stage of a scheme reads the halo of one field, writes others, and may read those at the cell
/// that it writes. It has, besides operator():
///
///     static constexpr u32 stages = 3;
///     static constexpr int max_threads = 256;
///     u32 reads(GridTime at) const;
///     T mirrored(T value, u32 component, u32 axes) const;
///
/// `stages`: of a step; without it, 1. `max_threads`: of a rank of a GPU, which has as many unless
/// Launch::threads says fewer. With 512 (without it) a thread has 128 registers, with 256 it has
/// 255, with 1024 it has 64. `reads`: the field whose halo is read; without it, step % 2. It is
/// also asked for the stage behind the last one. `mirrored`: the value that a reflecting side
/// shows, such as -value; bit d of `axes`: it is mirrored in dimension d. Without it, the value.
///
/// Each cell is computed by itself, so results do not depend on how the grid is cut, as long as the
/// devices are of one kind. (Compilers for GPUs and for CPUs round differently.) Part p is the
/// World's device p. The memory is the World's, until free(). A grid can be neither copied nor
/// moved.
template <class T>
class Grid {
 public:
  /// Collective, as World::window.
  /// \throws Error(bad_argument) for a grid that can't be cut so, or a halo that is wider than a
  /// grid whose sides are periodic or reflecting, in all processes; as World::window
  explicit Grid(World& world, GridOptions const& options);
  Grid(Grid const&) = delete;
  Grid& operator=(Grid const&) = delete;

  /// Ends it. Collective, as World::free.
  void free();

  Boxes const& boxes() const { return layout_.boxes(); }
  Box const& box(u32 part) const { return boxes().box(part); }
  /// Parts of this process.
  u32 first_part() const { return layout_.plan().first_part(); }
  u32 part_count() const { return layout_.plan().part_count(); }
  /// Peers, bytes and ways of each part: Plan::explain.
  std::string explain() const { return layout_.plan().explain(Bytes{sizeof(T)}); }

  /// Stores value(cell, component), or value(cell), to all cells of this process's parts, and to
  /// cells beyond sides whose boundary is Boundary::none. All else is NaN, if T has it: halo cells
  /// before the first exchange, and fields that were never filled. So a scheme that reads a cell
  /// that nobody brings, or a field without values, shows it. Not collective.
  template <class Value>
  void fill(u32 field, Value&& value);
  /// The values of a part's own cells, of any process: x fastest, component by component. Not
  /// collective. \throws Error(bad_argument)
  std::vector<T> read(u32 field, u32 part) const;
  /// Stores them, of a part of this process. Not collective. \throws Error(bad_argument)
  void write(u32 field, u32 part, std::span<T const> values);

  /// Carries out `steps` steps. Collective, as World::run. If it throws, the fields are somewhere
  /// between two steps.
  /// \throws Error(kernel_failed) that names cell and step if a value is no number, in all
  /// processes; as World::run, and as calls of a StreamEndpoint
  template <class Scheme, bool nvcc = detail::by_nvcc>
  GridResult run(Scheme const& scheme, u64 steps, GridRun const& options = {});
  /// The step with which the next run begins, unless it says another one.
  u64 next_step() const { return next_step_; }

 private:
  void check_alive(char const* operation) const {
    layout_.check_alive(memory_.values.info(), operation);
  }
  RankId rank_of(u32 part) const { return {part * world_->ranks_per_device()}; }

  World* world_;
  detail::GridLayout layout_;
  detail::GridWindows<T> memory_;
  std::vector<detail::GridCounts> counts_{};  // of the devices here
  u64 next_step_ = 0;
  std::unique_ptr<detail::GridStreams<T>> streams_{};
};

/// Shares of the cells for GridOptions::shares, in proportion to the measured speeds of the
/// devices. It makes a grid with equal parts, for which `fill(grid)` stores values, and takes the
/// time of `steps` steps in one kernel, behind the first two. Collective. \throws as Grid,
/// Grid::run
template <class T, class Scheme, class Fill, bool nvcc = detail::by_nvcc>
std::vector<double> measured_shares(World& world, GridOptions options, Scheme const& scheme,
                                    Fill&& fill, u64 steps = 10, Launch const& launch = {});

}  // namespace meshpost

#include "meshpost/array/detail/grid.hpp"
#endif
