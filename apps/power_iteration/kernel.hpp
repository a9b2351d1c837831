#pragma once
#include "common/sparse/keep.hpp"
#include "common/sparse/problem.hpp"
#include "norm.hpp"

namespace power {

using meshpost::apps::sparse::DeviceMatrix;
using meshpost::apps::sparse::Range;
using meshpost::apps::sparse::Rows;
using meshpost::apps::sparse::Square;

/// The vectors in the memory of a device, one block of doubles.
struct Layout {
  u32 stride;  ///< of the vectors, elements: a multiple of a group
  u32 side;
  u32 levels;  ///< of a tree
  u32 iterations;

  /// The vector before iteration k, not normalised. Two take turns.
  MESHPOST_FN u64 b(u32 iteration) const { return u64{stride} * (iteration % 2); }
  MESHPOST_FN u64 x() const { return u64{stride} * 2; }
  /// Sums that come from the sender of a level.
  MESHPOST_FN u64 inbox(u32 level) const { return u64{stride} * (3 + level); }
  /// Sums of squares of the groups of x.
  MESHPOST_FN u64 groups() const { return inbox(levels); }
  /// Sums of squares of the blocks: all on device 0, its own on another one.
  MESHPOST_FN u64 blocks() const { return groups() + stride / group; }
  /// The factors: that of iteration k normalises b(k). 0 until it is known.
  MESHPOST_FN u64 factor(u32 iteration) const { return blocks() + side + iteration; }
  MESHPOST_FN u64 size() const { return factor(iterations) + 1; }
};

/// On a GPU: messages between GPUs are fastest with at most 512 (lanes).
inline constexpr int gpu_threads = 512;

/// b = A b / |A b| again and again, as one kernel. Rank r of a device owns a share of rows, and the
/// same share of vectors. It sends only to ranks r of other devices, but for the factors. The steps
/// of the thesis, in the order of a rank:
///
/// 1. It gets its share of b, and sends it down the column of devices. The barrier of the device
///    then makes b complete for its ranks.
/// 2. It waits for the factor, and normalises each element when it reads it.
/// 3. It multiplies its rows.
/// 4. It adds what comes along the tree of the row of devices, and sends the sum.
/// 5. Those of the first column send their share of x to the first row, where it is the next b.
/// 6. They add its squares. The first rank of each device adds the sums of its device, that of
///    device 0 those of the devices. It makes the next factor and stores it in a word that all
///    ranks of device 0 poll. Rank d - 1 or so stores it in the word of device d.
///
/// Why no rank reads memory that is being written: Factor k + 1 is known after every rank has
/// multiplied in iteration k, because it is made of all sums. Between, a rank may be in iteration k
/// or k + 1.
/// - b(k): read until the end of step 3 of iteration k. It is written again in step 5 of iteration
///   k + 1, by a rank that knows factor k + 1. So all ranks have left iteration k's step 3. This is
///   why there are two.
/// - An inbox has one sender, with a tag of its own. It writes in step 4 of iteration k + 1, so it
///   knows factor k + 1. The receiver has added what came before that factor was made.
/// - Sums of groups and of blocks: written in step 6 of iteration k + 1, and read before factor
///   k + 1 was made.
/// - A rank alone writes and reads its share of x. A factor has a word of its own.
struct Kernel {
  static constexpr int max_threads = gpu_threads;

  meshpost::Window<double> data;
  DeviceMatrix matrix;
  Square square;
  Layout layout;
  bool kept;  ///< each rank keeps its rows in its scratch memory

  /// Scratch memory for sum_of(), before the rows that are kept.
  static constexpr u64 scratch = partials * sizeof(double);

  MESHPOST_FN static meshpost::Tag shared() { return {0}; }
  MESHPOST_FN static meshpost::Tag squared() { return {1}; }
  MESHPOST_FN static meshpost::Tag measured() { return {2}; }
  MESHPOST_FN static meshpost::Tag summed(u32 level) { return {3 + level}; }

  MESHPOST_FN void operator()(meshpost::Rank& self) const {
    auto const* const share = matrix.share.local(self).data();
    Range const rows{share[0], share[1]}, columns{share[2], share[3]};
    Rows const block = matrix.local(self);
    Rows const mine = kept ? meshpost::apps::sparse::keep(self, block, rows, scratch) : block;
    for (u32 iteration = 0; iteration < layout.iterations; ++iteration) {
      spread(self, columns, iteration);
      if (self.device() == 0 && iteration > 0) forward_factor(self, iteration);
      self.barrier(self.device_communicator());
      double const factor = await_factor(self, iteration);
      double* const all = data.local(self).data();
      double const* const b = all + layout.b(iteration);
      double* const x = all + layout.x();
      meshpost::apps::sparse::multiply<meshpost::apps::sparse::lanes_of_rank>(
          mine, rows.first, rows.last, self.thread(), self.threads(),
          [=](u32 column) { return b[column] * factor; },
          [=](u32 row, double sum) { x[row] = sum; });
      gather(self, rows);
      if (square.column_of(self.device()) == 0) finish(self, rows, iteration);
      self.flush(data);  // the next iteration overwrites x
    }
  }

 private:
  /// The rank of another device that shares data with this one.
  MESHPOST_FN static meshpost::RankId partner(meshpost::Rank& self, u32 device) {
    return {device * self.local_size() + self.local_id()};
  }

  /// Step 1.
  MESHPOST_FN void spread(meshpost::Rank& self, Range columns, u32 iteration) const {
    if (columns.count() == 0) return;
    u32 const i = square.row_of(self.device()), j = square.column_of(self.device());
    u32 const sender = i > 0 ? square.device(Square::parent(i), j) : square.device(j, 0);
    if (i > 0 || (j > 0 && iteration > 0)) self.wait(data, shared(), 1, partner(self, sender));
    u64 const offset = layout.b(iteration) + columns.first;
    auto const source = data.local(self).subspan(offset, columns.count());
    for (u32 level = Square::first_level(i); level < layout.levels; ++level)
      if (square.sends(i, level))
        self.put_notify(data.at(partner(self, square.device(i + (1u << level), j)), offset), source,
                        shared());
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

  /// Step 4.
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
        return;
      }
    }
  }

  /// Steps 5 and 6, on the first column. The squares go first: their way is longer.
  MESHPOST_FN void finish(meshpost::Rank& self, Range rows, u32 iteration) const {
    bool const leads = self.local_id() == 0;
    u32 const i = square.row_of(self.device());
    auto const all = data.local(self);
    auto const x = all.subspan(layout.x() + rows.first, rows.count());
    self.sync();  // threads read what others have added
    double* const sums = all.data() + layout.groups() + rows.first / group;
    self.each((rows.count() + group - 1) / group, [&](u64 k) {
      sums[k] = squares(x.data() + k * group, rows.count() - static_cast<u32>(k) * group);
    });
    u64 const next = layout.b(iteration + 1) + rows.first;
    if (i == 0) self.each(rows.count(), [&](u64 k) { all[next + k] = x[k]; });
    if (!leads) self.notify(data, meshpost::RankId{self.id() - self.local_id()}, squared());
    if (i > 0 && rows.count() > 0 && iteration + 1 < layout.iterations)
      self.put_notify(data.at(partner(self, square.device(0, i)), next), x, shared());
    if (leads) measure(self, iteration);
  }

  /// Step 6 of the first rank of a device.
  MESHPOST_FN void measure(meshpost::Rank& self, u32 iteration) const {
    u32 const i = square.row_of(self.device());
    auto const all = data.local(self);
    if (self.local_size() > 1) self.wait(data, squared(), self.local_size() - 1);
    else self.sync();
    u32 const rows = square.range(i, n).count();
    double const sum = sum_of(all.data() + layout.groups(), (rows + group - 1) / group,
                              self.thread(), self.threads(),
                              self.scratch<double>(partials).data(), [&] { self.sync(); });
    auto const mine = all.subspan(layout.blocks() + i, 1);
    if (self.thread() == 0) mine[0] = sum;
    if (i > 0) {
      self.put_notify(data.at(meshpost::RankId{0}, layout.blocks() + i), mine, measured());
      return;
    }
    if (square.side > 1) self.wait(data, measured(), square.side - 1);
    else self.sync();
    self.put_value(data.at(meshpost::RankId{0}, layout.factor(iteration + 1)),
                   factor(all.data() + layout.blocks(), square.side));
  }

 public:
  u32 n;  ///< rows of the matrix
};

// -- the plain kernels of the other version: a phase each, on a device's stream

struct Multiply {
  Rows matrix;
  u32 rows;
  double const *b, *factor;
  double* x;

  MESHPOST_FN void operator()(u64 first, u64 stride) const {
    double const* const from = b;
    double const by = *factor;
    double* const to = x;
    meshpost::apps::sparse::multiply<meshpost::apps::sparse::lanes_of_plain>(
        matrix, 0, rows, first, stride, [=](u32 column) { return from[column] * by; },
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
