#pragma once
#include <meshpost/meshpost.hpp>

#include <string>
#include <vector>

#include "options.hpp"
#include "product.hpp"
#include "random.hpp"
#include "square.hpp"

namespace meshpost::apps::sparse {

/// A square matrix that is cut into blocks for a square of devices, and their rows into shares for
/// ranks. The same in all processes.
class Problem {
 public:
  /// Shares consist of whole groups of `group` rows. \throws Error(bad_argument)
  Problem(MatrixOptions const& options, Square square, u32 ranks, u32 group);

  u32 n() const { return n_; }
  Square square() const { return square_; }
  u64 entries() const;
  /// The most rows, and entries, of a block.
  u32 most_rows() const;
  u64 most_entries() const;
  /// The most rows, and entries, of a rank's share in a block.
  u32 most_shared_rows() const { return most_shared_rows_; }
  u64 most_shared_entries() const { return most_shared_entries_; }

  /// The rows of block row `block` that rank `rank` of its devices owns, counted within the block.
  /// It owns these elements of vectors, too. Ranks have about the same number of entries.
  Range share(u32 block, u32 rank) const;
  /// The block of device `device`.
  Csr block(u32 device) const;
  /// The whole matrix.
  Csr whole() const;
  /// Random vector number `number`, whole.
  std::vector<double> vector(u32 number) const;

 private:
  u32 count(u32 row, u32 column_block) const;
  void cut(u32 group);

  RandomRows random_;
  Csr matrix_;  // of the file
  bool from_file_;
  u32 n_, ranks_;
  Square square_;
  std::vector<u64> block_entries_;  // by device
  std::vector<u32> cuts_;           // by block row and rank, and an end for each block row
  u32 most_shared_rows_ = 0;
  u64 most_shared_entries_ = 0;
};

/// Writes the matrix, and vector number `vector` as b.npy, into the folder of --dump, if it is
/// given.
/// \throws std::runtime_error naming the file
void dump(Problem const& problem, MatrixOptions const& options, u32 vector);

/// The blocks in the memory of their devices. The parts of all ranks of a device are the whole
/// block. `share` is uniform: rows first and last of the rank's share of x, then of its share of b.
struct DeviceMatrix {
  Window<u32> begin, columns, share;
  Window<double> values;

  /// The block of the calling rank's device.
  MESHPOST_FN Rows local(Rank const& self) const {
    return {begin.local(self).data(), columns.local(self).data(), values.local(self).data()};
  }
  /// The block of a device of this process, for work on its streams.
  Rows of(World const& world, u32 device) const;
};

/// Writes the blocks of this process's devices. Collective.
DeviceMatrix place(World& world, Problem const& problem);

/// The first rank of a device.
inline RankId first_rank_of(World const& world, u32 device) {
  return {device * world.ranks_per_device()};
}

}  // namespace meshpost::apps::sparse
