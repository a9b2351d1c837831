#pragma once
#include "stencils.hpp"

namespace stencil {

/// A rank keeps in its scratch: nothing; for ranks of one thread, some rows of what the stencils
/// pass on to each other; or all its fields (u, lap, fx, fy), in shared memory of a GPU. Rows that
/// others read are in the window, too.
enum class Kept : u32 { nothing, rows, fields };

/// One kernel for all steps. The ranks of a device are arranged in `groups` x blocks: each has the
/// levels of a group and a block of the device's rows. So a rank sends its own levels of a row to
/// one rank of the next device: `groups` small messages, or one if there is one group.
///
/// Each rank has all memory of its device as its part of the window. Ranks of one device read each
/// other's rows there, and only notify each other.
///
/// Why no rank reads memory that is being written. `n` is a step, `before` the rank with the rows
/// before, `after` the one behind.
/// - lap: I write it in step n behind the wait for `before`'s and `after`'s u of step n - 1. They
///   sent that behind their last look at lap in step n - 1. That is so on one device, where they
///   read my rows, and for the halo, into which I put.
/// - fy: likewise.
/// - u: step n writes the field that step n - 1 read. `before` and `after` read my rows of it in
///   their first stencil of step n - 1, and sent u of that step afterwards. I have waited for that.
/// A source of a put is written again in the next step, without flush(): its target has answered by
/// then, so the bytes have come.
/// A neighbour can't be so far ahead that a count of a later step is taken for one of this step: it
/// waits in each step for something that I send in the same step (`before` for lap, `after` for
/// fy), so it sends nothing of step n + 1 before I have sent that.
template <class Real>
struct Kernel {
  /// Counters: u from both neighbours, lap from the one behind, fy from the one before.
  static constexpr meshpost::Tag u{0}, lap_after{1}, flux_before{2};
  static constexpr u32 tags = 3;
  static constexpr int max_threads = 512;
  /// Its rows are too long to gain from lanes, and its waits are quicker without.
  static constexpr bool uses_lanes = false;

  meshpost::Window<Real> window;
  /// Only for its counters. Its parts have one size, so a rank finds those of another by
  /// arithmetic.
  meshpost::Window<u32> counters;
  Grid grid;
  u32 groups, blocks;  ///< of each device
  u32 ranks_per_device;
  u32 steps;
  Kept kept;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    if (self.id() % ranks_per_device >= groups * blocks) return;
    // Scratch holds what the threads would otherwise each compute again.
    auto& part = *reinterpret_cast<Part*>(self.scratch<std::byte>().data());
    if (self.thread() == 0) describe(self, part);
    self.sync();
    prepare(self, part);
    if (kept == Kept::fields) load(self, part);
    Borders const borders = borders_of(part);
    for (u32 step = 0; step < steps; ++step) {
      auto const& now = part.parities[step % 2];
#if !defined(__CUDA_ARCH__)
      if (kept == Kept::rows) {
        by_rows(self, part, now, borders);
        continue;
      }
#endif
      by_stencils(self, part, now, borders);
    }
    if (kept == Kept::fields) store(self, part);
  }

  /// Bytes of scratch of each rank.
  meshpost::Bytes scratch_size() const {
    u64 const rows = (grid.rows + grid.devices - 1) / grid.devices;
    u64 const row = u64{(grid.levels + groups - 1) / groups} * grid.columns;
    u64 const field = (rows + blocks - 1) / blocks * row;
    u64 const points = kept == Kept::fields ? 4 * field : kept == Kept::rows ? 7 * row : 0;
    return {sizeof(Part) + points * sizeof(Real)};
  }

 private:
  /// The part of a rank, its neighbours, and the rows that go to them. Of even and of odd steps:
  /// the fields, and the rows of the next u.
  struct alignas(16) Part {
    struct Parity {
      View<Real> view;
      meshpost::PreparedPut first_next, last_next;
    } parities[2];
    meshpost::PreparedPut lap, flux;
    meshpost::PreparedWait u, lap_after, flux_before;
    u64 count;  ///< points of a row
    u32 device;
    Range range;
    meshpost::RankId before, after;
  };

  /// By one thread.
  MESHPOST_COLD void describe(meshpost::Rank& self, Part& part) const {
    u32 const device = self.id() / ranks_per_device, place = self.id() % ranks_per_device;
    u32 const group = place % groups, block = place / groups;
    u32 const row = grid.first_row(device), rows = grid.first_row(device + 1) - row;
    u32 const me = self.id(), step = (blocks - 1) * groups;
    part.device = device;
    part.range = {row + share(rows, block, blocks), row + share(rows, block + 1, blocks),
                  share(grid.levels, group, groups), share(grid.levels, group + 1, groups)};
    part.before = {block > 0 ? me - groups : me - ranks_per_device + step};
    part.after = {block + 1 < blocks ? me + groups : me + ranks_per_device - step};
    part.count = u64{part.range.end_level - part.range.first_level} * grid.columns;
    for (u32 parity = 0; parity < 2; ++parity)
      part.parities[parity].view = view_of(self, part, parity);
  }
  static MESHPOST_FN u32 share(u32 all, u32 number, u32 of) {
    return static_cast<u32>(u64{all} * number / of);
  }
  /// The messages that the rank sends and awaits in each step.
  MESHPOST_COLD void prepare(meshpost::Rank& self, Part& part) const {
    u32 const first = part.range.first_row, last = part.range.end_row - 1;
    bool const before = first > 0, after = part.range.end_row < grid.rows;
    auto const keep = [&](auto& place, auto const& prepared) {
      if (self.thread() == 0) place = prepared;
    };
    if (before) {
      keep(part.lap, row_to(self, part, laplacian, first, part.before, lap_after));
      keep(part.flux_before, self.prepare_wait(counters, flux_before, 1, part.before));
    }
    if (after) {
      keep(part.flux, row_to(self, part, flux_y, last, part.after, flux_before));
      keep(part.lap_after, self.prepare_wait(counters, lap_after, 1, part.after));
    }
    for (u32 parity = 0; parity < 2; ++parity) {
      auto& of = part.parities[parity];
      if (before) keep(of.first_next, row_to(self, part, u1 - parity, first, part.before, u));
      if (after) keep(of.last_next, row_to(self, part, u1 - parity, last, part.after, u));
    }
    if (before || after)
      keep(part.u, self.prepare_wait(counters, u, u32{before} + u32{after},
                                     before ? part.before : part.after));
    self.sync();
  }
  /// The put of a row to its place in a neighbour's part, with a notification. On one device it is
  /// the notification alone.
  MESHPOST_COLD meshpost::PreparedPut row_to(meshpost::Rank& self, Part const& part, u32 field,
                                             u32 row, meshpost::RankId to,
                                             meshpost::Tag tag) const {
    u32 const device = to.value / ranks_per_device;
    if (device == part.device) return self.prepare_notify(counters, to, tag);
    u64 const begin = field * grid.field_size() + u64{part.range.first_level} * grid.columns;
    return self.prepare_put_notify(
        window.at(to, begin + grid.offset(device, row)),
        window.local(self).subspan(begin + grid.offset(part.device, row), part.count), counters,
        tag);
  }

  MESHPOST_FN View<Real> view_of(meshpost::Rank& self, Part& part, u32 step) const {
    Real* const memory = window.local(self).data();
    auto const there = view_of_device(grid, part.device, memory, step, part.range);
    if (kept != Kept::fields) return there;
    u64 const size = kept_size(part);
    u64 const last = u64{part.range.end_row - 1 - part.range.first_row} * grid.row_size();
    View<Real> here = there;
    here.u = here.next = in_scratch_of(part);
    here.lap = here.u + size, here.fx = here.u + 2 * size, here.fy = here.u + 3 * size;
    here.levels = part.range.end_level - part.range.first_level;
    here.first_lap = there.lap, here.last_fy = there.fy + last;
    here.first_next = there.next, here.last_next = there.next + last;
    return here;
  }
  static MESHPOST_FN Real* in_scratch_of(Part& part) { return reinterpret_cast<Real*>(&part + 1); }
  MESHPOST_FN u64 kept_size(Part const& part) const {
    return (part.range.end_row - part.range.first_row) * part.count;
  }

  /// A rank's first and last row, its neighbours, and if they are on another device.
  struct Borders {
    u32 first, last;
    bool before, after, far_before, far_after;
  };
  MESHPOST_FN Borders borders_of(Part const& part) const {
    u32 const first = part.range.first_row, last = part.range.end_row - 1;
    bool const before = first > 0, after = last + 1 < grid.rows;
    return {first,
            last,
            before,
            after,
            before && part.before.value / ranks_per_device != part.device,
            after && part.after.value / ranks_per_device != part.device};
  }

  // Two orders of a step, with the same results.

  /// One stencil after the other, each on all rows: the threads of a rank on a GPU share them.
  MESHPOST_FN void by_stencils(meshpost::Rank& self, Part const& part,
                               typename Part::Parity const& now, Borders const& borders) const {
    auto const [first, last, before, after, far_before, far_after] = borders;
    u32 const end = last + 1;
    // If a neighbour is on another device, the row that it waits for comes first, and the row that
    // waits for it last. Within a device the way is too short to pay for that.
    u32 const split_first = far_before ? first + 1 : first, split_last = far_after ? last : end;
    if (far_before) {
      compute<Stage::laplacian>(self, now.view, first, split_first);
      send(self, part.lap);
    }
    compute<Stage::laplacian>(self, now.view, split_first, end);
    if (before && !far_before) send(self, part.lap);
    else self.sync();
    if (far_after) compute<Stage::fluxes>(self, now.view, first, split_last);
    if (after) await(self, part.lap_after);
    compute<Stage::fluxes>(self, now.view, far_after ? split_last : first, end);
    if (after) send(self, part.flux);
    else self.sync();
    if (far_before) compute<Stage::update>(self, now.view, split_first, end);
    if (before) await(self, part.flux_before);
    compute<Stage::update>(self, now.view, first, far_before ? split_first : end);
    end_step(self, part, now, borders);
  }

  /// All stencils on one row after the other, for a rank of one thread: its core's cache has the
  /// rows around it. Only what needs a neighbour's row is left to the end. The reasons above hold
  /// here, too: all that others read is written behind the wait for their u of the step before.
  void by_rows(meshpost::Rank& self, Part& part, typename Part::Parity const& now,
               Borders const& borders) const {
    auto const [first, last, before, after, far_before, far_after] = borders;
    auto const work = [&]<Stage stage>(u32 row) {
      compute<stage>(self, view_of_row(part, now.view, row), row, row + 1);
    };
    work.template operator()<Stage::laplacian>(first);
    if (before) send(self, part.lap);
    for (u32 row = first; row < last; ++row) {
      work.template operator()<Stage::laplacian>(row + 1);
      work.template operator()<Stage::fluxes>(row);
      if (row > first) work.template operator()<Stage::update>(row);
    }
    if (after) await(self, part.lap_after);
    work.template operator()<Stage::fluxes>(last);
    if (after) send(self, part.flux);
    if (before) await(self, part.flux_before);
    work.template operator()<Stage::update>(first);
    if (last > first) work.template operator()<Stage::update>(last);
    end_step(self, part, now, borders);
  }

  MESHPOST_FN void end_step(meshpost::Rank& self, Part const& part,
                            typename Part::Parity const& now, Borders const& borders) const {
    if (borders.before) send(self, now.first_next);
    if (borders.after) send(self, now.last_next);
    if (borders.before || borders.after) await(self, part.u);
    else self.sync();
  }

  /// A row of the device's memory. Of what the stencils pass on to each other only some rows are
  /// kept, in scratch: two of lap, two of fy, one of fx; and those of the first row, whose update
  /// comes last.
  View<Real> view_of_row(Part& part, View<Real> const& all, u32 row) const {
    u32 const first = part.range.first_row, last = part.range.end_row - 1;
    u64 const size = grid.row_size(), at = (row - first) * size;
    auto const slot = [&](u32 number) { return in_scratch_of(part) + number * part.count; };
    auto const lap_of = [&](u32 of) { return slot(of % 2); };
    auto const fy_of = [&](u32 of) { return slot(of == first ? 4 : 2 + of % 2); };
    View<Real> one = all;
    one.u += at, one.next += at;
    one.lap = lap_of(row), one.fx = slot(row == first ? 6 : 5), one.fy = fy_of(row);
    one.rows.first_row = row, one.rows.end_row = row + 1;
    if (row != first) one.u_before = one.u - size, one.fy_before = fy_of(row - 1);
    if (row != last) one.u_after = one.u + size, one.lap_after = lap_of(row + 1);
    one.first_lap = row == first ? all.lap : nullptr;
    one.last_fy = row == last ? all.fy + at : nullptr;
    return one;
  }

  // The parts of a step are functions, not inlined: then each has the registers for itself.

  template <Stage stage>
  MESHPOST_COLD void compute(meshpost::Rank& self, View<Real> const& view, u32 first_row,
                             u32 end_row) const {
    Stencils<Real> const stencils{grid, view};
    stencils.template run<stage>({first_row, end_row, view.rows.first_level, view.rows.end_level},
                                 Threads::of(grid, self.thread(), self.threads()));
  }

  MESHPOST_COLD static void await(meshpost::Rank& self, meshpost::PreparedWait const& wait) {
    self.wait(wait);
  }
  MESHPOST_COLD static void send(meshpost::Rank& self, meshpost::PreparedPut const& put) {
    self.put_notify(put);
  }

  /// The first u comes to scratch.
  MESHPOST_COLD void load(meshpost::Rank& self, Part& part) const {
    Real* const u = in_scratch_of(part);
    Real const* const field = window.local(self).data() + u0 * grid.field_size();
    self.each(kept_size(part), [&](u64 i) { u[i] = field[place(part, i)]; });
    self.sync();
  }
  /// The last u goes to the window.
  MESHPOST_COLD void store(meshpost::Rank& self, Part& part) const {
    Real const* const u = in_scratch_of(part);
    Real* const field = window.local(self).data() + (u0 + steps % 2) * grid.field_size();
    self.each(kept_size(part), [&](u64 i) { field[place(part, i)] = u[i]; });
  }
  /// Of element i of a field in scratch, in a field of the device.
  MESHPOST_FN u64 place(Part const& part, u64 i) const {
    return grid.offset(part.device, part.range.first_row) + i / part.count * grid.row_size() +
           u64{part.range.first_level} * grid.columns + i % part.count;
  }
};

/// The other version: a kernel for each stencil, on all rows of a device.
template <class Real, Stage stage>
struct OnDevice {
  Stencils<Real> stencils;

  MESHPOST_FN void operator()(u64 thread, u64 threads) const {
    stencils.template run<stage>(
        stencils.view.rows,
        Threads::of(stencils.grid, static_cast<u32>(thread), static_cast<u32>(threads)));
  }
};

}  // namespace stencil
