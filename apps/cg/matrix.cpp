#include "matrix.hpp"

#include <cmath>
#include <cstdio>
#include <limits>
#include <meshpost/base/error.hpp>

#include "common/command.hpp"
#include "common/grid_text.hpp"
#include "common/sparse/matrix_market.hpp"

namespace cg {

using meshpost::Error;
using meshpost::Kind;
using meshpost::apps::refuse;

namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// A symmetric matrix has each entry twice, with equal bits.
void check_symmetric(meshpost::apps::sparse::Csr const& matrix, std::string const& file) {
  for (u32 row = 0; row < matrix.rows; ++row)
    for (u64 k = matrix.begin[row]; k < matrix.begin[row + 1]; ++k) {
      u32 const column = matrix.column[k];
      u64 const there = matrix.find(column, row);
      bool const found = there < matrix.begin[column + 1] && matrix.column[there] == row;
      if (found ? matrix.value[there] == matrix.value[k] : matrix.value[k] == 0) continue;
      auto const place = [](u64 i, u64 j) {
        return "(" + std::to_string(i + 1) + ", " + std::to_string(j + 1) + ")";
      };
      refuse("--matrix " + file,
             "it is not symmetric: entry " + place(row, column) + " is " +
                 number_text(matrix.value[k]) + ", " + place(column, row) + " is " +
                 (found ? number_text(matrix.value[there]) : "missing"),
             "conjugate gradients need a symmetric matrix; name another one");
    }
}

}  // namespace

Matrix::Matrix(MatrixOptions const& options) : shift_(options.shift) {
  if (!std::isfinite(shift_))
    refuse("--shift " + number_text(shift_), "it is no finite number", "give a finite one");
  if (options.file.empty()) make_grid(options);
  else read(options);
}

void Matrix::read(MatrixOptions const& options) {
  using namespace meshpost::apps::sparse;
  file_ = read_matrix_market(options.file, Shape::square);
  for (double const value : file_.value)  // sums of duplicate entries may overflow
    if (!std::isfinite(value))
      refuse("--matrix " + options.file, "entries at one place add up to " + number_text(value),
             "name a matrix of finite numbers");
  check_symmetric(file_, options.file);
  rows_ = file_.rows;
  entries_ = file_.entries();
  if (shift_ != 0)  // each row then has an entry on its diagonal
    for (u32 row = 0; row < file_.rows; ++row) {
      u64 const k = file_.find(row, row);
      if (k == file_.begin[row + 1] || file_.column[k] != row) ++entries_;
    }
  text_ = options.file;
}

void Matrix::make_grid(MatrixOptions const& options) {
  points_ = options.laplacian;
  auto const [nx, ny, nz] = extent_ = meshpost::apps::read_grid(options.grid, 2);
  if (points_ == 5 && nz > 1)
    refuse("--grid " + options.grid, "a Laplacian of 5 points has two directions",
           "give one such as 64x64, or --laplacian 7");
  double const rows = static_cast<double>(nx) * static_cast<double>(ny) * static_cast<double>(nz);
  if (rows > 1e15)
    refuse("--grid " + options.grid, number_text(rows) + " points are too many",
           "give at most 1e15");
  rows_ = nx * ny * nz;
  // In a direction of n points, n - 1 pairs are neighbours.
  if (points_ == 27) entries_ = (3 * nx - 2) * (3 * ny - 2) * (3 * nz - 2);
  else entries_ = rows_ + 2 * ((nx - 1) * ny * nz + nx * (ny - 1) * nz + nx * ny * (nz - 1));
  text_ = std::to_string(points_) + "-point Laplacian of " + std::to_string(nx) + " x " +
          std::to_string(ny) + " x " + std::to_string(nz);
}

void Matrix::append(u64 row, std::vector<u64>& columns, std::vector<double>& values) const {
  if (points_ > 0) {
    append_of_grid(row, columns, values);
    return;
  }
  bool shifted = shift_ == 0;
  auto const i = static_cast<u32>(row);
  for (u64 k = file_.begin[i]; k < file_.begin[i + 1]; ++k) {
    if (!shifted && file_.column[k] > row) {
      columns.push_back(row), values.push_back(shift_);
      shifted = true;
    }
    bool const diagonal = file_.column[k] == row;
    columns.push_back(file_.column[k]);
    values.push_back(diagonal ? file_.value[k] + shift_ : file_.value[k]);
    shifted = shifted || diagonal;
  }
  if (!shifted) columns.push_back(row), values.push_back(shift_);
}

// x varies fastest. Beyond the boundary all is 0.
void Matrix::append_of_grid(u64 row, std::vector<u64>& columns, std::vector<double>& values) const {
  auto const [nx, ny, nz] = extent_;
  u64 const x = row % nx, y = row / nx % ny, z = row / nx / ny;
  auto const add = [&](u64 column, double value) {
    columns.push_back(column), values.push_back(value);
  };
  double const middle = points_ - 1 + shift_;
  if (points_ < 27) {
    if (z > 0) add(row - nx * ny, -1);
    if (y > 0) add(row - nx, -1);
    if (x > 0) add(row - 1, -1);
    add(row, middle);
    if (x + 1 < nx) add(row + 1, -1);
    if (y + 1 < ny) add(row + nx, -1);
    if (z + 1 < nz) add(row + nx * ny, -1);
    return;
  }
  for (u64 k = z - (z > 0); k <= z + (z + 1 < nz); ++k)
    for (u64 j = y - (y > 0); j <= y + (y + 1 < ny); ++j)
      for (u64 i = x - (x > 0); i <= x + (x + 1 < nx); ++i) {
        u64 const column = (k * ny + j) * nx + i;
        add(column, column == row ? middle : -1.0);
      }
}

}  // namespace cg
