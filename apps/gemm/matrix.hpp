#pragma once
#include <functional>
#include <vector>

#include "common/blas.hpp"
#include "common/team.hpp"
#include "meshpost/copy/job_memory.hpp"
#include "plan.hpp"

namespace meshpost::gemm {

/// Devices of a grid; null: a device of another process.
using Devices = std::vector<std::shared_ptr<Device>>;

/// Says which process of a job has which device of a grid.
struct Spread {
  JobMemory* job = nullptr;   ///< null: this process has all
  std::vector<u32> owners{};  ///< process of each device
  bool one_clock = true;      ///< the processes run on one host

  bool has(u32 device) const { return !job || owners[device] == job->process(); }
  bool first() const { return !job || job->process() == 0; }
};

/// A matrix cut into one block a device, each stored column by column without gaps.
class Distributed {
 public:
  /// Elements are not initialized. Collective over the processes of `spread`. \throws
  /// Error(out_of_memory)
  Distributed(Devices devices, Grid grid, u64 rows, u64 columns, blas::Type type,
              Spread spread = {});

  u64 rows() const { return rows_; }
  u64 columns() const { return columns_; }
  Grid grid() const { return grid_; }
  blas::Type type() const { return type_; }
  /// The rows and columns of the whole matrix that a device's block has.
  Range rows_of(u32 device) const { return part(rows_, grid_.rows, device / grid_.columns); }
  Range columns_of(u32 device) const {
    return part(columns_, grid_.columns, device % grid_.columns);
  }
  Spread const& spread() const { return spread_; }
  /// Null for a block of another process: see far().
  void* block(u32 device) const { return blocks_[device].data(); }
  /// Part of a block of another process.
  RemoteBytes far(u32 device, u64 offset, Bytes size) const {
    return exposed_[device].at(spread_.owners[device], offset, size);
  }

  /// Fills this process's blocks with numbers between -1 and 1. They depend on seed, row and column
  /// alone, so they are the same on every grid. `team` computes them.
  void fill(u64 seed, blas::Team& team);
  /// Sets every byte of this process's blocks to 0xff: NaN in every type.
  void poison();
  /// Columns of the whole matrix, copied to the host: element (i, j) is at i + (j - first) *
  /// rows().
  std::vector<double> read(Range columns, blas::Team& team) const;

 private:
  Devices devices_;
  Grid grid_;
  u64 rows_, columns_;
  blas::Type type_;
  Spread spread_;
  std::vector<Allocation> blocks_;
  std::vector<Exposed> exposed_;  // by device; empty in one process
};

/// The number that fill() makes for an element, before it is rounded to the matrix's type.
double element(u64 seed, u64 row, u64 column);

/// Number of columns of so many rows that make a piece of work of some megabytes.
u64 columns_at_once(u64 rows);

}  // namespace meshpost::gemm
