#pragma once
#include "stencils.hpp"

namespace stencil {

/// One kernel for all steps. The ranks of a device are arranged in `groups` x blocks: each has the
/// levels of a group and a block of the device's rows. So a rank sends its own levels of a row to
/// one rank of the next device: `groups` small messages, or one if there is one group.
///
/// Each rank has all memory of its device as its part of the window. Ranks of one device read each
/// other's rows there: a put whose source and target are the same copies nothing.
///
/// Why no rank reads memory that is being written. `n` is a step, `before` the rank with the rows
/// before, `after` the one behind.
/// - lap: I write it in step n behind the wait for `before`'s and `after`'s u of step n - 1. They
///   sent that behind their last look at lap in step n - 1. That is so on one device, where they
///   read my rows, and for the halo, into which I put.
/// - fy: likewise.
/// - u: step n writes the field that step n - 1 read. `before` and `after` read my rows of it in
///   their first stencil of step n - 1, and sent u of that step afterwards. I have waited for that.
/// A neighbour can't be so far ahead that a count of a later step is taken for one of this step: it
/// waits in each step for something that I send in the same step (`before` for lap, `after` for
/// fy), so it sends nothing of step n + 1 before I have sent that.
template <class Real>
struct Kernel {
  /// Counters: the first u of `before`'s rows, and so on.
  static constexpr meshpost::Tag u_before{0}, u_after{1}, lap_after{2}, flux_before{3};
  static constexpr u32 tags = 4;

  meshpost::Window<Real> window;
  Grid grid;
  u32 groups, blocks;  ///< of each device
  u32 ranks_per_device;
  u32 steps;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    u32 const device = self.id() / ranks_per_device, place = self.id() % ranks_per_device;
    if (place >= groups * blocks) return;
    Mine const mine = mine_of(device, place);
    auto const range = mine.range;
    Stencils<Real> const stencils{grid, device, window.local(self).data()};
    auto const threads = Threads::of(self.thread(), self.threads());
    bool const before = range.first_row > 0, after = range.end_row < grid.rows;
    // The rows that a neighbour waits for come first. The rows that wait for a neighbour come last.
    Range const first{range.first_row, range.first_row + 1, range.first_level, range.end_level};
    Range const last{range.end_row - 1, range.end_row, range.first_level, range.end_level};
    Range const but_first{first.end_row, range.end_row, range.first_level, range.end_level};
    Range const but_last{range.first_row, last.first_row, range.first_level, range.end_level};
    for (u32 step = 0; step < steps; ++step) {
      stencils.do_laplacian(step, first, threads);
      send(self, mine, laplacian, first.first_row, mine.before, lap_after, before);
      stencils.do_laplacian(step, but_first, threads);
      self.sync();
      stencils.do_fluxes(step, but_last, threads);
      if (after) self.wait(window, lap_after, 1, mine.after);
      stencils.do_fluxes(step, last, threads);
      send(self, mine, flux_y, last.first_row, mine.after, flux_before, after);
      stencils.do_update(step, but_first, threads);
      if (before) self.wait(window, flux_before, 1, mine.before);
      stencils.do_update(step, first, threads);
      send(self, mine, u1 - step % 2, first.first_row, mine.before, u_after, before);
      send(self, mine, u1 - step % 2, last.first_row, mine.after, u_before, after);
      if (before) self.wait(window, u_before, 1, mine.before);
      if (after) self.wait(window, u_after, 1, mine.after);
    }
  }

 private:
  /// What a rank has, and its neighbours.
  struct Mine {
    u32 device;
    Range range;
    meshpost::RankId before, after;
  };

  MESHPOST_FN Mine mine_of(u32 device, u32 place) const {
    u32 const group = place % groups, block = place / groups;
    u32 const row = grid.first_row(device), rows = grid.first_row(device + 1) - row;
    u32 const me = device * ranks_per_device + place, step = (blocks - 1) * groups;
    return {device,
            {row + share(rows, block, blocks), row + share(rows, block + 1, blocks),
             share(grid.levels, group, groups), share(grid.levels, group + 1, groups)},
            {block > 0 ? me - groups : me - ranks_per_device + step},
            {block + 1 < blocks ? me + groups : me + ranks_per_device - step}};
  }
  static MESHPOST_FN u32 share(u32 all, u32 number, u32 of) {
    return static_cast<u32>(u64{all} * number / of);
  }

  /// Puts this rank's levels of a row to the same place of the neighbour's fields, and notifies it.
  MESHPOST_FN void send(meshpost::Rank& self, Mine const& mine, u32 field, u32 row,
                        meshpost::RankId to, meshpost::Tag tag, bool wanted) const {
    self.sync();  // all threads have stored the row
    if (!wanted) return;
    u64 const level = u64{mine.range.first_level} * grid.columns, base = field * grid.field_size();
    u64 const count = u64{mine.range.end_level - mine.range.first_level} * grid.columns;
    u32 const device = to.value / ranks_per_device;
    self.put_notify(window.at(to, base + grid.offset(device, row) + level),
                    window.local(self).subspan(base + grid.offset(mine.device, row) + level, count),
                    tag);
  }
};

/// The other version: a kernel for each stencil, on all rows of a device.
template <class Real, Stage stage>
struct OnDevice {
  Stencils<Real> stencils;
  u32 step;
  Range range;

  MESHPOST_FN void operator()(u64 thread, u64 threads) const {
    stencils.template run<stage>(step, range, Threads::of(thread, threads));
  }
};

}  // namespace stencil
