#pragma once
#include <meshpost/base/types.hpp>

#include <string>
#include <vector>

namespace meshpost::apps::sparse {

/// A sparse matrix by rows (CSR): the entries of row i are those from begin[i] to begin[i + 1] - 1,
/// in the order of their columns.
struct Csr {
  u32 rows = 0, columns = 0;
  std::vector<u64> begin = {0};
  std::vector<u32> column;
  std::vector<double> value;
  u64 repeated = 0;  ///< places at which several entries were given, and added

  u64 entries() const { return column.size(); }
  /// The first entry of row `row` whose column is at least `from`.
  u64 find(u32 row, u32 from) const;
};

/// Rows from `first` to `last` - 1, or columns.
struct Range {
  u32 first = 0, last = 0;

  MESHPOST_FN u32 count() const { return last - first; }
};

/// The rows and columns of a block, numbered from 0.
Csr cut_out(Csr const& matrix, Range rows, Range columns);

struct Entry {
  u32 row, column;
  double value;
};

/// Sorts entries. Counts places with several in Csr::repeated. The values of entries at the same
/// place are added, in their order.
Csr from_entries(u32 rows, u32 columns, std::vector<Entry> entries);

/// Throws if so many bytes are more than the memory of this host. `operation` and `what` say what
/// would take them. \throws Error(out_of_memory)
void require_memory(double bytes, std::string const& operation, std::string const& what);

/// Writes begin.npy, column.npy and value.npy into a folder that it makes.
/// \throws std::runtime_error naming the file
void write(Csr const& matrix, std::string const& folder);

}  // namespace meshpost::apps::sparse
