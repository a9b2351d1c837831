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
  /// Each rank keeps its fields in scratch (shared memory of a GPU) through all steps. Only the
  /// rows that others read are in the window, too.
  bool in_scratch;

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    if (self.id() % ranks_per_device >= groups * blocks) return;
    // Scratch holds what the threads would otherwise each compute again.
    auto& part = *reinterpret_cast<Part*>(self.scratch<std::byte>().data());
    if (self.thread() == 0) describe(self, part);
    self.sync();
    prepare(self, part);
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
        send(self, part.lap);
      }
      compute<Stage::laplacian>(self, part, now, split_first, end);
      if (before && !far_before) send(self, part.lap);
      else self.sync();
      if (far_after) compute<Stage::fluxes>(self, part, now, first, split_last);
      if (after) await(self, part.lap_after);
      compute<Stage::fluxes>(self, part, now, far_after ? split_last : first, end);
      if (after) send(self, part.flux);
      else self.sync();
      if (far_before) compute<Stage::update>(self, part, now, split_first, end);
      if (before) await(self, part.flux_before);
      compute<Stage::update>(self, part, now, first, far_before ? split_first : end);
      if (before) send(self, now.first_next);
      if (after) send(self, now.last_next);
      if (before || after) await(self, part.u);
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

  MESHPOST_COLD static void await(meshpost::Rank& self, meshpost::PreparedWait const& wait) {
    self.wait(wait);
  }
  MESHPOST_COLD static void send(meshpost::Rank& self, meshpost::PreparedPut const& put) {
    self.put_notify(put);
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
