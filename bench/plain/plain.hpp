#pragma once
// The case studies for one device as they are written without this library: OpenMP loops, or CUDA
// kernels. They have the arithmetic and the input of the applications, so results can be compared.
#include <memory>
#include <span>
#include <vector>

#include "common/sparse/csr.hpp"
#include "diffusion/npy.hpp"
#include "particles/problem.hpp"
#include "stencil/stencils.hpp"

namespace plain {

using meshpost::u32;
using meshpost::u64;

/// One study on one kind of device.
class Version {
 public:
  virtual ~Version() = default;
  /// Sets the data back to where each run begins. Not timed.
  virtual void reset() = 0;
  /// All steps; returns when they are done.
  virtual void run() = 0;
  /// The bytes that the application writes for --output, without the header of the file.
  virtual std::vector<std::byte> result() = 0;
};

struct StencilProblem {
  stencil::Grid grid;
  u32 steps;
  std::vector<float> initial;  ///< [row][level][column]
};

struct DiffusionProblem {
  diffusion::Field field;
  u32 steps;
};

/// Of spmv and of power_iteration.
struct SparseProblem {
  meshpost::apps::sparse::Csr matrix;
  std::vector<double> vectors[2];
  u32 steps;
};

/// How the versions of a kind of device are made. They keep a reference to the problem.
namespace openmp {
std::unique_ptr<Version> make(StencilProblem const& problem);
std::unique_ptr<Version> make(DiffusionProblem const& problem);
std::unique_ptr<Version> make(particles::Problem const& problem);
std::unique_ptr<Version> make_spmv(SparseProblem const& problem);
std::unique_ptr<Version> make_power_iteration(SparseProblem const& problem);
}  // namespace openmp
namespace cuda {  // on the first GPU; \throws Error(device_failed), also if there is none
std::unique_ptr<Version> make(StencilProblem const& problem);
std::unique_ptr<Version> make(DiffusionProblem const& problem);
std::unique_ptr<Version> make(particles::Problem const& problem);
std::unique_ptr<Version> make_spmv(SparseProblem const& problem);
std::unique_ptr<Version> make_power_iteration(SparseProblem const& problem);
}  // namespace cuda

/// Bytes of values, as result() returns them.
template <class Value>
std::vector<std::byte> bytes_of(std::vector<Value> const& values) {
  auto const bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace plain
