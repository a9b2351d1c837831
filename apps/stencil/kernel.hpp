#pragma once
#include "stencils.hpp"

namespace stencil {

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
  static constexpr u32 kept = 4;  // fields in scratch: u, lap, fx, fy
  static constexpr int max_threads = 512;

  meshpost::Window<Real> window;
  /// Only for its counters. Its parts have one size, so a rank finds those of another by
  /// arithmetic.
  meshpost::Window<u32> counters;
  Grid grid;
  u32 groups, blocks;  ///< of each device
  u32 ranks_per_device;
  u32 steps;
  /// Each rank keeps its fields in scratch (shared memory of a GPU) through all steps. Only the
  /// rows that others read are in the window, too.
  bool in_scratch;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    if (self.id() % ranks_per_device >= groups * blocks) return;
    // Scratch holds what the threads would otherwise each compute again.
    auto& part = *reinterpret_cast<Part*>(self.scratch<std::byte>().data());
    if (self.thread() == 0) describe(self, part);
    self.sync();
    if (in_scratch) load(self, part);
    bool const before = part.range.first_row > 0, after = part.range.end_row < grid.rows;
    // If a neighbour is on another device, the row that it waits for comes first, and the row that
    // waits for it last. Within a device the way is too short to pay for that.
    u32 const first = part.range.first_row, end = part.range.end_row, last = end - 1;
    bool const far_before = before && part.before.value / ranks_per_device != part.device;
    bool const far_after = after && part.after.value / ranks_per_device != part.device;
    u32 const split_first = far_before ? first + 1 : first, split_last = far_after ? last : end;
    for (u32 step = 0; step < steps; ++step) {
      auto const& now = part.parities[step % 2];
      if (far_before) {
        compute<Stage::laplacian>(self, part, now, first, split_first);
        send(self, part, part.first_lap, part.before, lap_after);
      }
      compute<Stage::laplacian>(self, part, now, split_first, end);
      if (before && !far_before) send(self, part, part.first_lap, part.before, lap_after);
      else self.sync();
      if (far_after) compute<Stage::fluxes>(self, part, now, first, split_last);
      if (after) await(self, lap_after, part.after);
      compute<Stage::fluxes>(self, part, now, far_after ? split_last : first, end);
      if (after) send(self, part, part.last_flux, part.after, flux_before);
      else self.sync();
      if (far_before) compute<Stage::update>(self, part, now, split_first, end);
      if (before) await(self, flux_before, part.before);
      compute<Stage::update>(self, part, now, first, far_before ? split_first : end);
      if (before) send(self, part, now.first_next, part.before, u);
      if (after) send(self, part, now.last_next, part.after, u);
      if (before || after)
        await(self, u, before ? part.before : part.after, u32{before} + u32{after});
      else self.sync();
    }
    if (in_scratch) store(self, part);
  }

  /// Bytes of scratch of each rank.
  meshpost::Bytes scratch_size() const {
    u64 const rows = (grid.rows + grid.devices - 1) / grid.devices;
    u64 const points =
        u64{(rows + blocks - 1) / blocks} * ((grid.levels + groups - 1) / groups) * grid.columns;
    return {sizeof(Part) + (in_scratch ? kept * points * sizeof(Real) : 0)};
  }

 private:
  /// A row that goes to a neighbour, in this rank's part of the window and in the neighbour's.
  struct Border {
    u64 source, target;
  };
  /// The part of a rank, and its neighbours. Of even and of odd steps: the fields, and the rows of
  /// the next u that go to neighbours.
  struct alignas(16) Part {
    struct Parity {
      View<Real> view;
      Border first_next, last_next;
    } parities[2];
    Border first_lap, last_flux;
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
    u32 const first = part.range.first_row, last = part.range.end_row - 1;
    part.first_lap = border(part, laplacian, first, part.before);
    part.last_flux = border(part, flux_y, last, part.after);
    for (u32 parity = 0; parity < 2; ++parity) {
      part.parities[parity] = {view_of(self, part, parity),
                               border(part, u1 - parity, first, part.before),
                               border(part, u1 - parity, last, part.after)};
    }
  }
  static MESHPOST_FN u32 share(u32 all, u32 number, u32 of) {
    return static_cast<u32>(u64{all} * number / of);
  }
  MESHPOST_FN Border border(Part const& part, u32 field, u32 row, meshpost::RankId to) const {
    u64 const begin = field * grid.field_size() + u64{part.range.first_level} * grid.columns;
    return {begin + grid.offset(part.device, row),
            begin + grid.offset(to.value / ranks_per_device, row)};
  }

  MESHPOST_FN View<Real> view_of(meshpost::Rank& self, Part& part, u32 step) const {
    Real* const memory = window.local(self).data();
    auto const there = view_of_device(grid, part.device, memory, step, part.range);
    if (!in_scratch) return there;
    u64 const size = kept_size(part);
    u64 const last = u64{part.range.end_row - 1 - part.range.first_row} * grid.row_size();
    View<Real> here = there;
    here.u = here.next = kept_fields(part);
    here.lap = here.u + size, here.fx = here.u + 2 * size, here.fy = here.u + 3 * size;
    here.levels = part.range.end_level - part.range.first_level;
    here.first_lap = there.lap, here.last_fy = there.fy + last;
    here.first_next = there.next, here.last_next = there.next + last;
    return here;
  }
  static MESHPOST_FN Real* kept_fields(Part& part) { return reinterpret_cast<Real*>(&part + 1); }
  MESHPOST_FN u64 kept_size(Part const& part) const {
    return (part.range.end_row - part.range.first_row) * part.count;
  }

  // The parts of a step are functions, not inlined: then each has the registers for itself.

  template <Stage stage>
  MESHPOST_COLD void compute(meshpost::Rank& self, Part const& part,
                             typename Part::Parity const& now, u32 first_row, u32 end_row) const {
    Stencils<Real> const stencils{grid, now.view};
    stencils.template run<stage>({first_row, end_row, part.range.first_level, part.range.end_level},
                                 Threads::of(grid, self.thread(), self.threads()));
  }

  MESHPOST_COLD void await(meshpost::Rank& self, meshpost::Tag tag, meshpost::RankId from,
                           u32 count = 1) const {
    self.wait(counters, tag, count, from);
  }

  /// Puts a row, which all threads have stored, to its place in the neighbour's part, and notifies
  /// it. Both operations begin with sync().
  MESHPOST_COLD void send(meshpost::Rank& self, Part const& part, Border const& border,
                          meshpost::RankId to, meshpost::Tag tag) const {
    if (to.value / ranks_per_device == part.device) return self.notify(counters, to, tag);
    self.put_notify(window.at(to, border.target),
                    window.local(self).subspan(border.source, part.count), counters, tag);
  }

  /// The first u comes to scratch.
  MESHPOST_COLD void load(meshpost::Rank& self, Part& part) const {
    Real* const u = kept_fields(part);
    Real const* const field = window.local(self).data() + u0 * grid.field_size();
    self.each(kept_size(part), [&](u64 i) { u[i] = field[place(part, i)]; });
    self.sync();
  }
  /// The last u goes to the window.
  MESHPOST_COLD void store(meshpost::Rank& self, Part& part) const {
    Real const* const u = kept_fields(part);
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
