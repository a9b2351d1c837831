#pragma once
#include "common/sparse/keep.hpp"
#include "common/sparse/problem.hpp"

namespace spmv {

using meshpost::u32;
using meshpost::u64;
using meshpost::apps::sparse::DeviceMatrix;
using meshpost::apps::sparse::Range;
using meshpost::apps::sparse::Rows;
using meshpost::apps::sparse::Square;

/// The vectors in the memory of a device, one block of doubles.
struct Layout {
  u32 stride;  ///< of the vectors, elements
  u32 levels;  ///< of a tree

  /// The vector that product `product` takes. There are two, which take turns: so a vector that
  /// comes late is the wrong one. Only devices of the first row have them.
  MESHPOST_FN u64 given(u32 product) const { return u64{stride} * (product % 2); }
  MESHPOST_FN u64 b() const { return u64{stride} * 2; }  ///< where the other rows get it
  MESHPOST_FN u64 x() const { return u64{stride} * 3; }
  /// Sums that come from the sender of a level.
  MESHPOST_FN u64 inbox(u32 level) const { return u64{stride} * (4 + level); }
  MESHPOST_FN u64 size() const { return inbox(levels); }
  /// The vector on a device of this row.
  MESHPOST_FN u64 vector(u32 row, u32 product) const { return row == 0 ? given(product) : b(); }
};

/// On a GPU: messages between GPUs are fastest with at most 512 (lanes).
inline constexpr int gpu_threads = 512;

/// x = A b again and again, as one kernel. Rank r of a device owns a share of rows, and so of b and
/// x, and sends only to ranks r of other devices. A product:
///
/// 1. Devices of the first row have b. A rank sends its share down the column, along a tree. The
///    barrier of the device then makes b complete for its ranks.
/// 2. It multiplies its rows.
/// 3. It adds what comes along the tree of the row of devices, and sends the sum. The device of the
///    first column has x in the end.
/// 4. The barrier of all ranks stands for the operation that would follow.
///
/// Why no rank reads memory that is being written: All ranks have read b and the inboxes of a
/// product before its barrier of all ranks, and they are written after that. Within a product, a
/// rank of another device writes b or an inbox once, and its notification is consumed before they
/// are read. A rank alone writes and reads its share of x. An inbox has one sender, and a tag of
/// its own.
struct Kernel {
  static constexpr int max_threads = gpu_threads;

  meshpost::Window<double> data;
  DeviceMatrix matrix;
  Square square;
  Layout layout;
  u32 products;
  bool kept;  ///< each rank keeps its rows in its scratch memory

  MESHPOST_FN static meshpost::Tag shared() { return {0}; }
  MESHPOST_FN static meshpost::Tag summed(u32 level) { return {1 + level}; }

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    auto const* const share = matrix.share.local(self).data();
    Range const rows{share[0], share[1]}, columns{share[2], share[3]};
    Rows const block = matrix.local(self);
    Rows const mine = kept ? meshpost::apps::sparse::keep(self, block, rows, 0) : block;
    for (u32 product = 0; product < products; ++product) {
      spread(self, columns, product);
      auto const all = data.local(self);
      double const* const b = all.data() + layout.vector(square.row_of(self.device()), product);
      double* const x = all.data() + layout.x();
      meshpost::apps::sparse::multiply<meshpost::apps::sparse::lanes_of_rank>(
          mine, rows.first, rows.last, self.thread(), self.threads(),
          [=](u32 column) { return b[column]; }, [=](u32 row, double sum) { x[row] = sum; });
      gather(self, rows);
      self.barrier();
    }
  }

 private:
  /// The rank of another device that shares data with this one.
  MESHPOST_FN static meshpost::RankId partner(meshpost::Rank& self, u32 device) {
    return {device * self.local_size() + self.local_id()};
  }

  MESHPOST_FN void spread(meshpost::Rank& self, Range columns, u32 product) const {
    u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
    if (columns.count() > 0) {
      if (i > 0) self.wait(data, shared(), 1, partner(self, square.device(Square::parent(i), j)));
      u64 const offset = layout.vector(i, product) + columns.first;
      auto const source = data.local(self).subspan(offset, columns.count());
      for (u32 level = Square::first_level(i); level < layout.levels; ++level)
        if (square.sends(i, level))
          self.put_notify(data.at(partner(self, square.device(i + (1u << level), j)),
                                  layout.b() + columns.first),
                          source, shared());
    }
    if (i > 0) self.barrier(self.device_communicator());
  }

  MESHPOST_FN void gather(meshpost::Rank& self, Range rows) const {
    if (rows.count() == 0) return;
    u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
    auto const all = data.local(self);
    auto const x = all.subspan(layout.x() + rows.first, rows.count());
    for (u32 level = 0; level < layout.levels; ++level) {
      if (square.gathers(j, level)) {
        self.wait(data, summed(level), 1, partner(self, square.device(i, j + (1u << level))));
        double const* const more = all.data() + layout.inbox(level) + rows.first;
        self.each(rows.count(), [&](u64 k) { x[k] += more[k]; });
      } else if (j > 0 && level == Square::last_level(j)) {
        self.put_notify(data.at(partner(self, square.device(i, j - (1u << level))),
                                layout.inbox(level) + rows.first),
                        x, summed(level));
        self.flush(data);  // the next product overwrites x
        return;
      }
    }
  }
};

// -- the plain kernels of the other version: a phase each, on a device's stream

struct Multiply {
  Rows matrix;
  u32 rows;
  double const* b;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    double const* const from = b;
    double* const to = x;
    meshpost::apps::sparse::multiply<meshpost::apps::sparse::lanes_of_plain>(
        matrix, 0, rows, first, stride, [=](u32 column) { return from[column]; },
        [=](u32 row, double sum) { to[row] = sum; });
  }
};

struct Add {
  u32 rows;
  double const* more;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 k = first; k < rows; k += stride) x[k] += more[k];
  }
};

}  // namespace spmv
