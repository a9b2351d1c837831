#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "common/files.hpp"
#include "matrix_market.hpp"

namespace meshpost::apps::sparse {
namespace {

u64 root_of(u32 number) {
  auto root = static_cast<u64>(std::sqrt(static_cast<double>(number)));
  while (root * root > number) --root;
  while ((root + 1) * (root + 1) <= number) ++root;
  return root;
}

}  // namespace

Square square_of(World const& world, std::string const& spec) {
  u32 const devices = world.device_count();
  u64 const side = root_of(devices);
  if (side * side != devices)
    throw Error(Kind::bad_argument, spec.empty() ? "the devices" : "--devices " + spec,
                std::to_string(devices) + " devices form no square",
                "name " + std::to_string(side * side) + " or " +
                    std::to_string((side + 1) * (side + 1)) +
                    " devices; parts of GPUs are devices too: --devices cuda:0,1*2 are four");
  return {static_cast<u32>(side)};
}

Problem::Problem(MatrixOptions const& options, Square square, u32 ranks, u32 group)
    : random_{options.seed, options.density},
      from_file_(!options.file.empty()),
      ranks_(ranks),
      square_(square) {
  u64 n = u64{options.size} * square.side;
  if (from_file_) {
    matrix_ = read_matrix_market(options.file, Shape::square);
    n = matrix_.rows;
    if (n < square.side)
      throw Error(Kind::bad_argument, "--matrix " + options.file,
                  std::to_string(n) + " rows for " + std::to_string(square.side) +
                      " rows of devices; each needs one",
                  "name at most " + std::to_string(n * n) + " devices, or a larger matrix");
  }
  if (n > std::numeric_limits<std::int32_t>::max())
    throw Error(Kind::bad_argument, "--size " + std::to_string(options.size),
                std::to_string(n) + " rows of the whole matrix are more than 2147483647",
                "choose a smaller size");
  n_ = static_cast<u32>(n);
  // Vectors, and what cut() counts in a block row. Then the blocks of all devices of this process,
  // which has all of them if it is alone.
  std::string const operation =
      from_file_ ? "--matrix " + options.file : "--size " + std::to_string(options.size);
  auto const rows = static_cast<double>(n);
  require_memory(8 * (4 * rows + rows * (1 + 1.0 / square.side)), operation,
                 std::to_string(n) + " rows");
  cut(group);
  require_memory(12 * static_cast<double>(most_entries()), operation,
                 std::to_string(most_entries()) + " entries of a block");
  if (most_entries() > std::numeric_limits<u32>::max() / 2)
    throw Error(Kind::bad_argument, "--density " + std::to_string(options.density),
                std::to_string(most_entries()) + " entries in a block are more than 2147483647",
                "choose a smaller density or size");
}

u32 Problem::count(u32 row, u32 column_block) const {
  auto const columns = square_.range(column_block, n_);
  if (!from_file_) return random_.count(row, column_block, columns.count());
  return static_cast<u32>(matrix_.find(row, columns.last) - matrix_.find(row, columns.first));
}

// A rank's share ends at the group of rows where its part of the entries is reached. A row counts
// one more than its entries, because it takes time, too, and may be empty.
void Problem::cut(u32 group) {
  block_entries_.assign(square_.devices(), 0);
  for (u32 i = 0; i < square_.side; ++i) {
    auto const range = square_.range(i, n_);
    u32 const rows = range.count();
    std::vector<u64> weight = {0};                            // of all rows before
    std::vector<std::vector<u64>> before(square_.side, {0});  // entries, by block column
    for (u32 row = 0; row < rows; ++row) {
      u64 sum = weight.back() + 1;
      for (u32 j = 0; j < square_.side; ++j) {
        u32 const entries = count(range.first + row, j);
        sum += entries;
        before[j].push_back(before[j].back() + entries);
      }
      weight.push_back(sum);
    }
    for (u32 j = 0; j < square_.side; ++j) block_entries_[square_.device(i, j)] = before[j].back();
    u32 first = 0;
    cuts_.push_back(0);
    for (u32 rank = 0; rank < ranks_; ++rank) {
      u64 const wanted = weight.back() * (rank + 1) / ranks_;
      u32 last = first;
      while (last < rows && weight[last] < wanted) last = std::min(last + group, rows);
      if (rank + 1 == ranks_) last = rows;
      for (u32 j = 0; j < square_.side; ++j)
        most_shared_entries_ = std::max(most_shared_entries_, before[j][last] - before[j][first]);
      most_shared_rows_ = std::max(most_shared_rows_, last - first);
      cuts_.push_back(first = last);
    }
  }
}

u64 Problem::entries() const {
  u64 all = 0;
  for (u64 const entries : block_entries_) all += entries;
  return all;
}
u32 Problem::most_rows() const { return (n_ + square_.side - 1) / square_.side; }
u64 Problem::most_entries() const { return *std::ranges::max_element(block_entries_); }

Range Problem::share(u32 block, u32 rank) const {
  auto const* const cut = &cuts_[block * (ranks_ + 1) + rank];
  return {cut[0], cut[1]};
}

Csr Problem::block(u32 device) const {
  u32 const j = square_.column_of(device);
  auto const rows = square_.range(square_.row_of(device), n_), columns = square_.range(j, n_);
  if (from_file_) return cut_out(matrix_, rows, columns);
  Csr block;
  block.rows = rows.count();
  block.columns = columns.count();
  for (u32 row = rows.first; row < rows.last; ++row) {
    random_.append(block, row, j, columns.count(), 0);
    block.begin.push_back(block.entries());
  }
  return block;
}

Csr Problem::whole() const {
  if (from_file_) return matrix_;
  Csr all;
  all.rows = all.columns = n_;
  for (u32 row = 0; row < n_; ++row) {
    for (u32 j = 0; j < square_.side; ++j) {
      auto const columns = square_.range(j, n_);
      random_.append(all, row, j, columns.count(), columns.first);
    }
    all.begin.push_back(all.entries());
  }
  return all;
}

std::vector<double> Problem::vector(u32 number) const {
  std::vector<double> all(n_);
  for (u32 i = 0; i < n_; ++i) all[i] = random_element(random_.seed, number, i);
  return all;
}

void dump(Problem const& problem, MatrixOptions const& options, u32 vector) {
  if (options.dump.empty()) return;
  write(problem.whole(), options.dump);
  auto const b = problem.vector(vector);
  write_npy(options.dump + "/b.npy", "<f8", {b.size()}, std::as_bytes(std::span(b)));
}

DeviceMatrix place(World& world, Problem const& problem) {
  u64 const entries = std::max<u64>(problem.most_entries(), 1);
  DeviceMatrix const matrix{
      world.window<u32>(shared_parts(world, problem.most_rows() + u64{1}), Tags{0}, "rows"),
      world.window<u32>(shared_parts(world, entries), Tags{0}, "columns"),
      world.window<u32>(4, Tags{0}, "shares"),
      world.window<double>(shared_parts(world, entries), Tags{0}, "values")};
  auto const square = problem.square();
  for (u32 k = 0; k < world.devices().size(); ++k) {
    u32 const ranks = world.ranks_per_device(), device = world.first_rank() / ranks + k;
    auto const block = problem.block(device);
    auto const rank = first_rank_of(world, device);
    std::vector<u32> const begin(block.begin.begin(), block.begin.end());
    matrix.begin.write(rank, 0, std::span<u32 const>(begin));
    matrix.columns.write(rank, 0, std::span<u32 const>(block.column));
    matrix.values.write(rank, 0, std::span<double const>(block.value));
    for (u32 r = 0; r < ranks; ++r) {
      auto const x = problem.share(square.row_of(device), r);
      auto const b = problem.share(square.column_of(device), r);
      u32 const share[] = {x.first, x.last, b.first, b.last};
      matrix.share.write(RankId{rank.value + r}, 0, std::span<u32 const>(share));
    }
  }
  return matrix;
}

Rows DeviceMatrix::of(World const& world, u32 device) const {
  auto const rank = first_rank_of(world, device);
  return {begin.part(rank).data(), columns.part(rank).data(), values.part(rank).data()};
}

}  // namespace meshpost::apps::sparse
