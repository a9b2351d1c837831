// Products of a sparse matrix, and power iteration, with a range of rows for each thread.
#include <omp.h>

#include "common/sparse/product.hpp"
#include "plain/plain.hpp"
#include "power_iteration/norm.hpp"

namespace plain::openmp {
namespace {

using namespace meshpost::apps::sparse;

/// The matrix, with 32-bit offsets as on a device.
struct Matrix {
  explicit Matrix(Csr const& from)
      : begin(from.begin.begin(), from.begin.end()), csr(from), rows(from.rows) {}

  /// This thread's share of the rows, in whole groups.
  Range mine(u32 group) const {
    u64 const groups = (rows + group - 1) / group,
              threads = static_cast<u32>(omp_get_num_threads());
    u32 const thread = static_cast<u32>(omp_get_thread_num());
    auto const cut = [&](u64 part) {
      return std::min(rows, static_cast<u32>(groups * part / threads) * group);
    };
    return {cut(thread), cut(thread + 1)};
  }
  template <class Vector>
  void multiply(Range of, Vector const& vector, double* x) const {
    Rows const matrix{begin.data(), csr.column.data(), csr.value.data()};
    meshpost::apps::sparse::multiply<1>(matrix, of.first, of.last, 0, 1, vector,
                                        [=](u32 row, double sum) { x[row] = sum; });
  }

  std::vector<u32> begin;
  Csr const& csr;
  u32 rows;
};

class Spmv : public Version {
 public:
  explicit Spmv(SparseProblem const& problem) : problem_(problem), matrix_(problem.matrix) {}

  void reset() override { x_.assign(matrix_.rows, 0); }

  void run() override {
#pragma omp parallel
    {
      Range const mine = matrix_.mine(1);
      for (u32 product = 0; product < problem_.steps; ++product) {
        double const* const b = problem_.vectors[product % 2].data();
        matrix_.multiply(mine, [=](u32 column) { return b[column]; }, x_.data());
#pragma omp barrier
      }
    }
  }

  std::vector<std::byte> result() override { return bytes_of(x_); }

 private:
  SparseProblem const& problem_;
  Matrix matrix_;
  std::vector<double> x_;
};

class PowerIteration : public Version {
 public:
  explicit PowerIteration(SparseProblem const& problem)
      : problem_(problem), matrix_(problem.matrix), sums_(power::groups_of(matrix_.rows)) {}

  void reset() override {
    b_ = problem_.vectors[0];
    x_.assign(b_.size(), 0);
    factor_ = power::first_factor(b_);
  }

  void run() override {
#pragma omp parallel
    {
      Range const mine = matrix_.mine(power::group);
      for (u32 iteration = 0; iteration < problem_.steps; ++iteration) {
        double const *const b = b_.data(), by = factor_;
        matrix_.multiply(mine, [=](u32 column) { return b[column] * by; }, x_.data());
        for (u32 row = mine.first; row < mine.last; row += power::group)
          sums_[row / power::group] = power::squares(x_.data() + row, matrix_.rows - row);
#pragma omp barrier
#pragma omp single
        {
          double partial[power::partials];
          double const sum =
              power::sum_of(sums_.data(), static_cast<u32>(sums_.size()), 0, 1, partial, [] {});
          factor_ = power::factor(&sum, 1);
          std::swap(b_, x_);
        }
      }
    }
  }

  std::vector<std::byte> result() override {
    auto vector = b_;
    for (double& element : vector) element *= factor_;
    return bytes_of(vector);
  }

 private:
  SparseProblem const& problem_;
  Matrix matrix_;
  std::vector<double> b_, x_, sums_;
  double factor_ = 0;
};

}  // namespace

std::unique_ptr<Version> make_spmv(SparseProblem const& problem) {
  return std::make_unique<Spmv>(problem);
}
std::unique_ptr<Version> make_power_iteration(SparseProblem const& problem) {
  return std::make_unique<PowerIteration>(problem);
}

}  // namespace plain::openmp
