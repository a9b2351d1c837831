#pragma once
#include <meshpost/base/strided.hpp>
#include <meshpost/base/types.hpp>

#include <optional>
#include <string>
#include <vector>

#include "common/sparse/csr.hpp"

namespace cg {

using meshpost::u32;
using meshpost::u64;

struct MatrixOptions {
  u32 laplacian = 7;  ///< points of its stencil
  std::string grid = "32x32x32";
  std::string file{};  ///< Matrix Market; empty: a Laplacian
  double shift = 0;    ///< added to each element of the diagonal
};

/// Rows of a square symmetric matrix, by their numbers. Of a generated one it has nothing in
/// memory, so each device makes its own rows only. A file is in memory as a whole.
class Matrix {
 public:
  /// \throws Error(bad_argument) for a grid without points, a file as read_matrix_market(), and a
  /// matrix that is not square or not symmetric
  explicit Matrix(MatrixOptions const& options);

  u64 rows() const { return rows_; }
  /// Of all rows.
  u64 entries() const { return entries_; }
  /// Places at which the file has several entries, which are added.
  u64 repeated() const { return file_.repeated; }
  /// Appends a row's columns, which ascend, and its values.
  void append(u64 row, std::vector<u64>& columns, std::vector<double>& values) const;
  /// "27-point Laplacian of 64 x 64 x 64", or the file.
  std::string const& describe() const { return text_; }

 private:
  void read(MatrixOptions const& options);
  void make_grid(MatrixOptions const& options);
  void append_of_grid(u64 row, std::vector<u64>& columns, std::vector<double>& values) const;

  u32 points_ = 0;  // of the stencil; 0: a file
  meshpost::Extents3 extent_;
  meshpost::apps::sparse::Csr file_;
  double shift_;
  u64 rows_ = 0, entries_ = 0;
  std::string text_;
};

}  // namespace cg
