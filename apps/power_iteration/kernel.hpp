#pragma once
#include "common/sparse/keep.hpp"
#include "common/sparse/problem.hpp"
#include "common/sparse/tree.hpp"
#include "norm.hpp"

namespace power {

namespace sparse = meshpost::apps::sparse;

/// The vectors in the memory of a device, one block of doubles.
struct Layout {
  u32 stride;  ///< of the vectors, elements: a multiple of a group
  u32 side;
  u32 levels;  ///< of a tree
  u32 iterations;

  /// The vector before iteration k, not normalised. Two take turns.
  MESHPOST_FN u64 b(u32 iteration) const { return u64{stride} * (iteration % 2); }
  MESHPOST_FN u64 x() const { return u64{stride} * 2; }
  /// Sums from others, a vector for each level.
  MESHPOST_FN u64 inbox() const { return u64{stride} * 3; }
  /// Sums of squares of the groups of x. Two take turns.
  MESHPOST_FN u64 groups(u32 iteration) const {
    return inbox() + u64{stride} * levels + u64{stride / group} * (iteration % 2);
  }
  /// Sums of squares of the blocks: all on device 0, its own on another one.
  MESHPOST_FN u64 blocks() const { return groups(0) + u64{stride / group} * 2; }
  /// The factors: that of iteration k normalises b(k). 0 until it is known.
  MESHPOST_FN u64 factor(u32 iteration) const { return blocks() + side + iteration; }
  MESHPOST_FN u64 size() const { return factor(iterations) + 1; }
};

/// b = A b / |A b| again and again, as one kernel. Rank r of a device owns a share of rows, and the
/// same share of vectors. It sends only to ranks r of other devices, except for the factors. The
/// steps of the thesis, in the order of a rank:
///
/// 1. It gets its share of b, and sends it down the column of devices. The barrier of the device
///    then makes b complete for its ranks. Device 0 needs none: its own ranks write its b in step
///    5, and the factor is made after that.
/// 2. It waits for the factor, and normalises each element when it reads it.
/// 3. It multiplies its rows.
/// 4. It adds what comes along the tree of the row of devices, and sends the sum.
/// 5. Ranks of the first column send their share of x to the first row, where it is the next b.
/// 6. They add its squares. The first rank of each device adds the sums of its device, that of
///    device 0 those of the devices. It makes the next factor and stores it in a word that all
///    ranks of device 0 poll. Rank d of device 0 stores it in the word that those of device d poll.
///
/// If there is one device, its ranks meet in step 6, and each adds the sums and has the factor.
///
/// Why no rank reads memory that is being written: Factor k + 1 is made of the sums of all ranks.
/// So a rank that knows it knows that all ranks have read in iteration k what steps 3 and 4 read.
/// - b(k) is read until the end of step 3 of iteration k. It is written again in step 5 of
///   iteration k + 1, by a rank that knows factor k + 1. With a single b, step 5 of iteration k
///   would write it, while ranks of other rows of devices may still multiply. So there are two.
/// - An inbox has one sender. It writes in step 4 of iteration k + 1, when it knows factor k + 1.
/// - Sums of groups and of blocks are written in step 6 of iteration k + 1. They were read before
///   factor k + 1 was made. On one device each rank makes that itself, and sums of groups take
///   turns: those of iteration k are written again in iteration k + 2, behind the meeting of
///   iteration k + 1, to which each rank comes when it has read them.
/// - A rank alone writes and reads its share of x. Each factor has a word of its own.
struct Kernel {
  meshpost::Window<double> data;
  sparse::DeviceMatrix matrix;
  sparse::Square square;
  Layout layout;
  u32 n;      ///< rows of the matrix
  bool kept;  ///< each rank keeps its rows in its scratch memory

  /// Scratch memory for sum_of(), before the rows that are kept.
  static constexpr u64 scratch = partials * sizeof(double);
  static constexpr meshpost::Tag shared{0}, squared{1}, measured{2};
  static constexpr u32 first_sum = 3;  ///< tag

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    auto const* const share = matrix.share.local(self).data();
    sparse::Range const rows{share[0], share[1]}, columns{share[2], share[3]};
    sparse::Rows const block = matrix.local(self);
    sparse::Rows const mine = kept ? sparse::keep(self, block, rows, scratch) : block;
    bool const alone = square.devices() == 1;
    double factor = 0;
    for (u32 iteration = 0; iteration < layout.iterations; ++iteration) {
      spread(self, columns, iteration);
      if (self.device() == 0 && iteration > 0 && !alone) forward_factor(self, iteration);
      if (self.device() != 0) self.barrier(self.device_communicator());
      if (iteration == 0 || !alone) factor = await_factor(self, iteration);
      double* const all = data.local(self).data();
      double const* const b = all + layout.b(iteration);
      double* const x = all + layout.x();
      sparse::multiply<sparse::lanes_of_rank>(
          mine, rows.first, rows.last, self.thread(), self.threads(),
          [=](u32 column) { return b[column] * factor; },
          [=](u32 row, double sum) { x[row] = sum; });
      sparse::add_along_row(self, data, square, rows, layout.x(), layout.inbox(), layout.stride,
                            first_sum);
      if (square.column_of(self.device()) == 0) finish(self, rows, iteration);
      if (alone) factor = factor_of_device(self, iteration);
      self.flush(data);  // the next iteration overwrites x
    }
  }

 private:
  /// Step 1.
  MESHPOST_FN void spread(meshpost::Rank& self, sparse::Range columns, u32 iteration) const {
    if (columns.count() == 0) return;
    u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
    u32 const sender = i > 0 ? square.device(sparse::Square::parent(i), j) : square.device(j, 0);
    if (i > 0 || (j > 0 && iteration > 0))
      self.wait(data, shared, 1, sparse::partner(self, sender));
    u64 const offset = layout.b(iteration) + columns.first;
    auto const mine = data.local(self).subspan(offset, columns.count());
    sparse::send_down(self, data, square, mine, offset, shared);
  }

  MESHPOST_FN double await_factor(meshpost::Rank& self, u32 iteration) const {
    auto const word = data.local(self).subspan(layout.factor(iteration), 1);
    if (iteration > 0)
      self.wait_until(word, meshpost::Compare::not_equal, 0.0, meshpost::RankId{0});
    return word[0];
  }

  /// On device 0: the ranks share the other devices. Rank 0, which makes the factors, is the last.
  MESHPOST_FN void forward_factor(meshpost::Rank& self, u32 iteration) const {
    u32 const ranks = self.local_size();
    u32 device = 1 + (self.local_id() + ranks - 1) % ranks;
    if (device >= square.devices()) return;
    double const factor = await_factor(self, iteration);
    for (; device < square.devices(); device += ranks)
      self.put_value(data.at(meshpost::RankId{device * ranks}, layout.factor(iteration)), factor);
  }

  /// Steps 5 and 6, on the first column. The squares go first: their way is longer.
  MESHPOST_FN void finish(meshpost::Rank& self, sparse::Range rows, u32 iteration) const {
    bool const leads = self.local_id() == 0;
    u32 const i = square.row_of(self.device());
    auto const all = data.local(self);
    auto const x = all.subspan(layout.x() + rows.first, rows.count());
    self.sync();  // threads read what others have added
    double* const sums = all.data() + layout.groups(iteration) + rows.first / group;
    self.each(groups_of(rows.count()), [&](u64 k) {
      sums[k] = squares(x.data() + k * group, rows.count() - static_cast<u32>(k) * group);
    });
    u64 const next = layout.b(iteration + 1) + rows.first;
    if (i == 0) self.each(rows.count(), [&](u64 k) { all[next + k] = x[k]; });
    if (square.devices() == 1) return;
    if (!leads) self.notify(data, meshpost::RankId{self.id() - self.local_id()}, squared);
    if (i > 0 && rows.count() > 0 && iteration + 1 < layout.iterations)
      self.put_notify(data.at(sparse::partner(self, square.device(0, i)), next), x, shared);
    if (leads) measure(self, iteration);
  }

  /// Step 6 of each rank, if there is one device.
  MESHPOST_FN double factor_of_device(meshpost::Rank& self, u32 iteration) const {
    self.barrier();
    auto const all = data.local(self);
    double const sum = sum_of_groups(self, iteration);
    double const next = power::factor(&sum, 1);
    if (self.id() == 0 && self.thread() == 0) all[layout.factor(iteration + 1)] = next;
    return next;
  }

  MESHPOST_FN double sum_of_groups(meshpost::Rank& self, u32 iteration) const {
    return sum_of(data.local(self).data() + layout.groups(iteration),
                  groups_of(square.range(square.row_of(self.device()), n).count()), self.thread(),
                  self.threads(), self.scratch<double>(partials).data(), [&] { self.sync(); });
  }

  /// Step 6 of the first rank of a device.
  MESHPOST_FN void measure(meshpost::Rank& self, u32 iteration) const {
    u32 const i = square.row_of(self.device());
    auto const all = data.local(self);
    if (self.local_size() > 1) self.wait(data, squared, self.local_size() - 1);
    self.sync();
    double const sum = sum_of_groups(self, iteration);
    auto const mine = all.subspan(layout.blocks() + i, 1);
    if (self.thread() == 0) mine[0] = sum;
    if (i > 0) {
      self.put_notify(data.at(meshpost::RankId{0}, layout.blocks() + i), mine, measured);
      return;
    }
    if (square.side > 1) self.wait(data, measured, square.side - 1);
    self.sync();
    self.put_value(data.at(meshpost::RankId{0}, layout.factor(iteration + 1)),
                   factor(all.data() + layout.blocks(), square.side));
  }
};

// -- the plain kernels of the other version: a phase each, on a device's stream

struct Multiply {
  sparse::Rows matrix;
  u32 rows;
  double const *b, *factor;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    double const* const from = b;
    double const by = *factor;
    double* const to = x;
    sparse::multiply<sparse::lanes_of_plain>(
        matrix, 0, rows, first, stride, [=](u32 column) { return from[column] * by; },
        [=](u32 row, double sum) { to[row] = sum; });
  }
};

/// Squares of the groups; and the next b, on device 0.
struct Squares {
  u32 rows;
  double const* x;
  double *sums, *b;  ///< b: null on the other devices

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    for (u64 k = first; k * group < rows; k += stride)
      sums[k] = squares(x + k * group, rows - static_cast<u32>(k) * group);
    if (b)
      for (u64 k = first; k < rows; k += stride) b[k] = x[k];
  }
};

/// The sum of a block, by one block of threads. On a single device the factor, too.
struct Sum {
  u32 groups;
  double const* sums;
  double *sum, *alone;  ///< alone: null if there are more devices

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
#if defined(__CUDA_ARCH__)
    __shared__ double partial[partials];
    auto const sync = [] { __syncthreads(); };
#else
    double partial[partials];
    auto const sync = [] {};
#endif
    double const all =
        sum_of(sums, groups, static_cast<u32>(first), static_cast<u32>(stride), partial, sync);
    if (first > 0) return;
    *sum = all;
    if (alone) *alone = power::factor(&all, 1);
  }
};

struct Factor {
  u32 blocks;
  double const* sums;
  double* factor;

  MESHPOST_FN void operator()(u64 first, u64) const {
    if (first == 0) *factor = power::factor(sums, blocks);
  }
};

}  // namespace power
