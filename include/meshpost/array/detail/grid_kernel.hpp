#pragma once
#include "meshpost/array/detail/grid_tiles.hpp"
#include "meshpost/array/exchange.hpp"

// clang-format off
// A grid's steps inside one kernel.
//
// A part's box is cut into tiles, each done by one rank. Tiles that read no cell of another part
// come first (inner tiles), then the others (outer tiles). A stage:
//
//     start(F)      F: the field whose halo the stage reads. Other parts get its border cells.
//     inner tiles   read F, write another field G
//     finish(F)     the halo of F is there
//     outer tiles   likewise
//
// Behind each tile, its rank fills halo cells whose value is one of this tile (periodic and
// reflecting sides of a part that has both ends), in the field that the next stage reads.
//
// Why nobody reads what is being written:
//  1. A stage reads the halo of F, and writes no cell of F. It may read and write the same cell of
//     another field. So within a stage no rank reads what another one writes.
//  2. start() of the next stage begins with a barrier of the device, so all tiles of this stage,
//     and the cells that were filled behind them, are there, and nobody reads their old values.
//     finish() ends with a barrier, behind which all may read the halo.
//  3. A tile is filled from when its rank has written it and met (sync). If the next stage reads F
//     again, nothing is filled: the halo is there, and others read it.
// clang-format on

namespace meshpost::detail {

/// A grid's memory on all devices. Windows are shared by the ranks of a device.
template <class T>
struct GridWindows {
  Exchange<T> exchange;
  Window<T> values;
  Window<u64> table;
  Window<GridMark> marks;  ///< one for each rank
  u64 pitch = 0;
  u32 fields = 0, components = 1;

  MESHPOST_FN GridMemory<T> local(Rank const& self) const {
    return {values.local(self).data(),
            table.local(self).data(),
            marks.local(self).data(),
            pitch,
            fields,
            components};
  }
};

/// All steps.
template <class T, class Scheme>
struct GridKernel {
  static constexpr u32 gpu_threads = most_threads_of<Scheme>();
  static constexpr int max_threads = gpu_threads;

  Scheme scheme;
  GridWindows<T> grid;
  u64 first_step, steps, check_every;
  bool measures;

  MESHPOST_FN void operator()(Rank& self) const {
    GridMemory<T> const memory = grid.local(self);
    u64 const *const table = memory.table, inner = table[GridTable::inner],
                     all = table[GridTable::tiles], me = self.local_id(), ranks = self.local_size();
    GridMark& mark = memory.marks[me];
    if (self.thread() == 0) mark = {};
    self.sync();
    GridTiles<T, Scheme, Rank> const tiles(self, memory, scheme, mark);
    u64 busy = 0;
    auto const compute = [&](u64 begin, u64 end, GridStage const& stage) {
      // Only then, and by one thread: all threads' looks at the clock take some 40 us.
      bool const looks = measures && self.thread() == 0;
      u64 const before = looks ? self.now() : 0;
      tiles.compute({begin + me, end, ranks}, stage);
      if (measures) self.barrier(self.device_communicator());
      if (looks) busy += self.now() - before;
    };

    u64 const end = first_step + steps;
    tiles.fill({me, all, ranks}, checked(self, read_by(scheme, {first_step, 0})));
    RankExchange<T> halo(self, grid.exchange);
    for (GridTime at{first_step, 0}; at.step < end; at = next_of<Scheme>(at)) {
      GridStage const stage = stage_of(scheme, at, end, check_every);
      checked(self, stage.next);
      LocalSpan<T> const read(memory.values + stage.field * grid.pitch, grid.pitch);
      halo.start(read);
      // A loop, so that the scheme's code is in the kernel once.
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
      for (u32 phase = 0; phase < 2; ++phase) {
        bool const outer = phase == 1;
        if (outer) {
          halo.finish(read);
          mirror_late(self, tiles, table, stage.field);
        }
        compute(outer ? inner : 0, outer ? all : inner, stage);
      }
    }
    if (self.thread() == 0) mark.busy = busy;
  }

 private:
  template <class Tiles>
  MESHPOST_FN void mirror_late(Rank& self, Tiles const& tiles, u64 const* table, u32 field) const {
    if constexpr (mirrors<Scheme, T>) {
      if (table[GridTable::late_count] == 0) return;
      tiles.mirror_late(
          {self.local_id() * self.threads() + self.thread(), self.local_size() * self.threads()},
          field);
      self.barrier(self.device_communicator());
    }
  }
  MESHPOST_FN u32 checked(Rank& self, u32 field) const {
    if (field >= grid.fields)
      self.fail(
          "Grid: reads() of the scheme gave a field that the grid doesn't have "
          "(GridOptions::fields)");
    return field;
  }
};

}  // namespace meshpost::detail
