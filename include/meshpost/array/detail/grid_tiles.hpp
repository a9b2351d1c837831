#pragma once
#include "meshpost/array/grid_field.hpp"
#include "meshpost/device/block.hpp"

// A device's share of a grid's stage: its tiles, by teams of threads. A team is a rank, a block of
// a plain kernel, or the thread of a CPU device's stream. It has thread(), threads(), sync(), and
// any(): true in all its threads if it is true in one.

namespace meshpost::detail {

/// A device's table, as words.
struct GridTable {
  static constexpr u64 frame = 0;        ///< four words: GridFrame
  static constexpr u64 inner = 4;        ///< number of inner tiles; they come first
  static constexpr u64 tiles = 5;        ///< number of all
  static constexpr u64 boxes = 6;        ///< where their boxes begin: box_words each
  static constexpr u64 fill_begins = 7;  ///< of each tile, and the end: its cells to fill
  static constexpr u64 fills = 8;        ///< where these begin: {from, to}
  /// Cells that mirror one of another part: where they begin, and how many.
  static constexpr u64 late = 9, late_count = 10;
  static constexpr u64 header = 11;

  static constexpr u64 box_words = 6;
  // A place, and which dimensions were mirrored.
  static constexpr u64 axes_shift = 61;
  static constexpr u64 place_mask = (u64{1} << axes_shift) - 1;
};

/// A report of a team to the host.
struct GridMark {
  u64 busy = 0;   ///< nanoseconds in which the device computed (GridRun::measures)
  u32 found = 0;  ///< 1: a value that is no number
  u64 step = 0;   ///< behind which it was found first
  u64 place = 0;  ///< of such a value in its field
};

/// A grid's memory on a device.
template <class T>
struct GridMemory {
  T* values = nullptr;  ///< field, component, frame
  u64 const* table = nullptr;
  GridMark* marks = nullptr;
  u64 pitch = 0;  ///< elements from a field to the next
  u32 fields = 0, components = 1;

  MESHPOST_FN GridFrame frame() const {
    u64 const* const words = table + GridTable::frame;
    return {words[0], words[1], words[2], words[3]};
  }
};

/// A stage, and what is to be done besides.
struct GridStage {
  GridTime at{};
  u32 field = 0;       ///< whose halo it reads
  u32 next = 0;        ///< whose halo the next stage reads
  bool fills = false;  ///< it is another one than this stage's
  bool checks = false;
};

/// `end`: the step behind the last one; `check_every`: GridRun.
template <class Scheme>
MESHPOST_FN GridStage stage_of(Scheme const& scheme, GridTime at, u64 end, u64 check_every) {
  GridTime const next = next_of<Scheme>(at);
  u32 const field = read_by(scheme, at), next_field = read_by(scheme, next);
  bool const checks =
      check_every != 0 && next.stage == 0 && (next.step == end || next.step % check_every == 0);
  return {at, field, next_field, field != next_field, checks};
}

template <class T>
inline constexpr bool may_be_no_number = same<T, float> || same<T, double>;

/// Every `stride`-th number from `first` to `end`: of tiles, of cells.
struct GridShare {
  u64 first = 0, end = 0, stride = 1;
};

template <class T, class Scheme, class Team>
class GridTiles {
 public:
  /// `mark`: the team's.
  MESHPOST_FN GridTiles(Team const& team, GridMemory<T> const& grid, Scheme const& scheme,
                        GridMark& mark)
      : team_(team),
        grid_(grid),
        scheme_(scheme),
        mark_(mark),
        fields_(grid.values, grid.pitch, grid.fields, grid.frame()),
        boxes_(grid.table + grid.table[GridTable::boxes]),
        fill_begins_(grid.table + grid.table[GridTable::fill_begins]) {
    if (fill_begins_[grid.table[GridTable::tiles]] == 0) fill_begins_ = nullptr;  // none at all
  }

  MESHPOST_FN void compute(GridShare const& share, GridStage const& stage) const {
    GridThreads const threads{team_.thread(), team_.threads()};
    for (u64 tile = share.first; tile < share.end; tile += share.stride) {
      Box const box = box_of(tile);
      scheme_(threads, box, fields_, stage.at);
      if (stage.checks) check(threads, box, stage);
      if (stage.fills) fill_behind(tile, stage.next);
    }
  }
  /// The halo cells whose value is an own one, of these tiles.
  MESHPOST_FN void fill(GridShare const& share, u32 field) const {
    for (u64 tile = share.first; tile < share.end; tile += share.stride) fill_behind(tile, field);
  }
  /// Cells that came from other parts as they are there. `thread`: of all that do it.
  MESHPOST_FN void mirror_late(GridThreads const& thread, u32 field) const {
    u64 const* const late = grid_.table + grid_.table[GridTable::late];
    T* const values = grid_.values + field * grid_.pitch;
    for (u64 i = thread.thread; i < grid_.table[GridTable::late_count]; i += thread.threads)
      for (u32 k = 0; k < grid_.components; ++k) {
        T& value = values[(late[i] & GridTable::place_mask) + k * component()];
        value = mirrored(value, k, static_cast<u32>(late[i] >> GridTable::axes_shift));
      }
  }

 private:
  MESHPOST_FN u64 component() const { return grid_.table[GridTable::frame + 3]; }
  MESHPOST_FN Box box_of(u64 tile) const {
    u64 const* const words = boxes_ + tile * GridTable::box_words;
    auto const cell = [&](u32 i) {
      return Cell{static_cast<i64>(words[i]), static_cast<i64>(words[i + 1]),
                  static_cast<i64>(words[i + 2])};
    };
    return {cell(0), cell(3)};
  }

  MESHPOST_FN void check(GridThreads const& threads, Box const& box, GridStage const& stage) const {
    if constexpr (may_be_no_number<T>) {
      team_.sync();
      auto const values = fields_.old(stage.next);
      u64 bad = ~u64{0};
      threads.each(box, [&](i64 x, i64 y, i64 z) {
        for (u32 k = 0; k < grid_.components; ++k) {
          T const value = values(x, y, z, k);
          if (bad == ~u64{0} && !(value - value == T(0)))
            bad = values.frame().place(x, y, z) + k * values.frame().component;
        }
      });
      if (!team_.any(bad != ~u64{0})) return;
      bool const first = memory::load_relaxed(&mark_.found) == 0;
      team_.sync();
      // Any of the threads' places serves.
      if (!first || bad == ~u64{0}) return;
      memory::store(&mark_.place, bad, Order::none);
      memory::store(&mark_.step, stage.at.step, Order::none);
      memory::store_relaxed(&mark_.found, 1);
    }
  }

  // NOLINTNEXTLINE(bugprone-easily-swappable-parameters): as in fill()
  MESHPOST_FN void fill_behind(u64 tile, u32 field) const {
    if (!fill_begins_) return;
    u64 const begin = fill_begins_[tile], end = fill_begins_[tile + 1];
    if (begin == end) return;
    team_.sync();  // all threads of this tile have stored
    u64 const* const fills = grid_.table + grid_.table[GridTable::fills];
    T* const values = grid_.values + field * grid_.pitch;
    for (u64 i = begin + team_.thread(); i < end; i += team_.threads()) {
      u64 const from = fills[2 * i], to = fills[2 * i + 1];
      u32 const axes = static_cast<u32>(to >> GridTable::axes_shift);
      for (u32 k = 0; k < grid_.components; ++k) {
        u64 const apart = k * component();
        values[(to & GridTable::place_mask) + apart] = mirrored(values[from + apart], k, axes);
      }
    }
  }
  MESHPOST_FN T mirrored(T const& value, u32 component, u32 axes) const {
    if constexpr (mirrors<Scheme, T>)
      return axes == 0 ? value : scheme_.mirrored(value, component, axes);
    else return value;
  }

  Team const& team_;
  GridMemory<T> const& grid_;
  Scheme const& scheme_;
  GridMark& mark_;
  GridFields<T> fields_;
  // In the table. They are kept, because each load of a word on the way takes long.
  u64 const* boxes_;
  u64 const* fill_begins_;
};

}  // namespace meshpost::detail
