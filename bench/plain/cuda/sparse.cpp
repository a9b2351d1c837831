// Products of a sparse matrix as a kernel each; power iteration as three kernels an iteration.
// Eight threads share a row.
#include "common/sparse/product.hpp"
#include "gpu.hpp"
#include "power_iteration/norm.hpp"

namespace plain::cuda {
namespace {

using namespace meshpost::apps::sparse;

/// x = A (factor b); without `factor` x = A b.
__global__ void __launch_bounds__(block)
    multiply_rows(Rows const matrix, u32 rows, double const* b, double const* factor, double* x) {
  auto const store = [=](u32 row, double sum) { x[row] = sum; };
  u64 const threads = u64{gridDim.x} * block;
  if (factor == nullptr) {
    multiply<lanes_of_plain>(
        matrix, 0, rows, thread(), threads, [=](u32 c) { return b[c]; }, store);
  } else {
    double const by = *factor;
    multiply<lanes_of_plain>(
        matrix, 0, rows, thread(), threads, [=](u32 c) { return b[c] * by; }, store);
  }
}

__global__ void __launch_bounds__(block) square_groups(u32 rows, double const* x, double* sums) {
  u32 const row = static_cast<u32>(thread()) * power::group;
  if (row < rows) sums[thread()] = power::squares(x + row, rows - row);
}

/// By one block.
__global__ void __launch_bounds__(block)
    find_factor(u32 groups, double const* sums, double* factor) {
  __shared__ double partial[power::partials];
  double const sum =
      power::sum_of(sums, groups, threadIdx.x, block, partial, [] { __syncthreads(); });
  if (threadIdx.x == 0) *factor = power::factor(&sum, 1);
}

/// The matrix in the memory of the GPU.
struct Matrix {
  explicit Matrix(Csr const& csr)
      : rows(csr.rows),
        begin(std::vector<u32>(csr.begin.begin(), csr.begin.end())),
        column(csr.column),
        value(csr.value) {}

  void multiply_by(double const* b, double const* factor, double* x, cudaStream_t stream) const {
    multiply_rows<<<blocks(u64{rows} * lanes_of_plain), block, 0, stream>>>(
        {begin.data(), column.data(), value.data()}, rows, b, factor, x);
  }

  u32 rows;
  Array<u32> begin, column;
  Array<double> value;
};

class Spmv : public Version {
 public:
  explicit Spmv(SparseProblem const& problem)
      : matrix_(problem.matrix),
        b0_(problem.vectors[0]),
        b1_(problem.vectors[1]),
        x_(matrix_.rows),
        graph_([&](auto stream) {
          for (u32 product = 0; product < problem.steps; ++product)
            matrix_.multiply_by(product % 2 ? b1_.data() : b0_.data(), nullptr, x_.data(), stream);
        }) {}

  void reset() override { x_.poison(); }
  void run() override { graph_.run(); }
  std::vector<std::byte> result() override { return bytes_of(x_.read(0, x_.count())); }

 private:
  Matrix matrix_;
  Array<double> b0_, b1_, x_;
  Graph graph_;
};

class PowerIteration : public Version {
 public:
  explicit PowerIteration(SparseProblem const& problem)
      : problem_(problem),
        matrix_(problem.matrix),
        b_(matrix_.rows),
        x_(matrix_.rows),
        sums_(power::groups_of(matrix_.rows)),
        factor_(1),
        graph_([&](auto stream) {
          double *b = b_.data(), *x = x_.data();
          u32 const groups = static_cast<u32>(sums_.count());
          for (u32 iteration = 0; iteration < problem.steps; ++iteration) {
            matrix_.multiply_by(b, factor_.data(), x, stream);
            square_groups<<<blocks(groups), block, 0, stream>>>(matrix_.rows, x, sums_.data());
            find_factor<<<1, block, 0, stream>>>(groups, sums_.data(), factor_.data());
            std::swap(b, x);  // the result is the next b
          }
        }) {}

  void reset() override {
    b_.write(problem_.vectors[0], 0);
    x_.poison();
    factor_.write({power::first_factor(problem_.vectors[0])}, 0);
  }
  void run() override { graph_.run(); }
  std::vector<std::byte> result() override {
    auto vector = (problem_.steps % 2 ? x_ : b_).read(0, matrix_.rows);
    double const factor = factor_.read(0, 1)[0];
    for (double& element : vector) element *= factor;
    return bytes_of(vector);
  }

 private:
  SparseProblem const& problem_;
  Matrix matrix_;
  Array<double> b_, x_, sums_, factor_;
  Graph graph_;
};

}  // namespace

std::unique_ptr<Version> make_spmv(SparseProblem const& problem) {
  return std::make_unique<Spmv>(problem);
}
std::unique_ptr<Version> make_power_iteration(SparseProblem const& problem) {
  return std::make_unique<PowerIteration>(problem);
}

}  // namespace plain::cuda
