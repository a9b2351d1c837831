#pragma once
#include "common/sparse/keep.hpp"
#include "common/sparse/problem.hpp"
#include "common/sparse/tree.hpp"

namespace spmv {

namespace sparse = meshpost::apps::sparse;
using meshpost::u32;
using meshpost::u64;

/// The vectors in the memory of a device, one block of doubles.
struct Layout {
  u32 stride;  ///< of the vectors, elements
  u32 levels;  ///< of a tree

  /// The vector that product `product` takes. There are two, which take turns: so a vector that
  /// comes late is the wrong one. Only devices of the first row have them.
  MESHPOST_FN u64 given(u32 product) const { return u64{stride} * (product % 2); }
  MESHPOST_FN u64 b() const { return u64{stride} * 2; }  ///< where the other rows get it
  MESHPOST_FN u64 x() const { return u64{stride} * 3; }
  /// Sums from others, a vector for each level.
  MESHPOST_FN u64 inbox() const { return u64{stride} * 4; }
  MESHPOST_FN u64 size() const { return inbox() + u64{stride} * levels; }
  /// The vector on a device of this row.
  MESHPOST_FN u64 vector(u32 row, u32 product) const { return row == 0 ? given(product) : b(); }
};

/// x = A b again and again, as one kernel. Rank r of a device owns a share of rows, and so of b and
/// x, and sends only to ranks r of other devices. A product:
///
/// 1. Devices of the first row have b. A rank sends its share down the column, along a tree. The
///    barrier of the device then makes b complete for its ranks; on CPU devices those of the first
///    row meet as well.
/// 2. It multiplies its rows.
/// 3. It adds what comes along the tree of the row of devices, and sends the sum. The device of the
///    first column has x in the end.
/// 4. The barrier of all ranks stands for the operation that would follow.
///
/// Why no rank reads memory that is being written: All ranks have read b and the inboxes of a
/// product before its barrier of all ranks, and they are written after that. Within a product, a
/// rank of another device writes a share of b or of an inbox once. Its notification is consumed
/// before they are read. A rank alone writes and reads its share of x.
struct Kernel {
  meshpost::Window<double> data;
  sparse::DeviceMatrix matrix;
  sparse::Square square;
  Layout layout;
  u32 products;
  bool kept;  ///< each rank keeps its rows in its scratch memory

  static constexpr meshpost::Tag shared{0};
  static constexpr u32 first_sum = 1;  ///< tag

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    auto const* const share = matrix.share.local(self).data();
    sparse::Range const rows{share[0], share[1]}, columns{share[2], share[3]};
    sparse::Rows const block = matrix.local(self);
    sparse::Rows const mine = kept ? sparse::keep(self, block, rows, 0) : block;
    for (u32 product = 0; product < products; ++product) {
      spread(self, columns, product);
      double* const all = data.local(self).data();
      double const* const b = all + layout.vector(square.row_of(self.device()), product);
      double* const x = all + layout.x();
      sparse::multiply<sparse::lanes_of_rank>(
          mine, rows.first, rows.last, self.thread(), self.threads(),
          [=](u32 column) { return b[column]; }, [=](u32 row, double sum) { x[row] = sum; });
      sparse::add_along_row(self, data, square, rows, layout.x(), layout.inbox(), layout.stride,
                            first_sum);
      self.flush(data);  // the next product overwrites x
      self.barrier();
    }
  }

 private:
  MESHPOST_FN void spread(meshpost::Rank& self, sparse::Range columns, u32 product) const {
    u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
    if (columns.count() > 0) {
      if (i > 0)
        self.wait(data, shared, 1,
                  sparse::partner(self, square.device(sparse::Square::parent(i), j)));
      auto const mine =
          data.local(self).subspan(layout.vector(i, product) + columns.first, columns.count());
      sparse::send_down(self, data, square, mine, layout.b() + columns.first, shared);
    }
    // b is complete for the ranks of this device. Those of the first row have it. They meet only on
    // CPU devices, where ranks share cores: otherwise the last one would send when the others have
    // multiplied, and the devices below would wait for it.
#if defined(__CUDA_ARCH__)
    bool const meet = i > 0;
#else
    bool const meet = square.side > 1;
#endif
    if (meet) self.barrier(self.device_communicator());
  }
};

/// A product of a device, in the other version.
struct Multiply {
  sparse::Rows matrix;
  u32 rows;
  double const* b;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    double const* const from = b;
    double* const to = x;
    sparse::multiply<sparse::lanes_of_plain>(
        matrix, 0, rows, first, stride, [=](u32 column) { return from[column]; },
        [=](u32 row, double sum) { to[row] = sum; });
  }
};

}  // namespace spmv
