// The stencil as three OpenMP loops a step, all in one parallel region.
#include <omp.h>

#include <algorithm>
#include <limits>

#include "plain/plain.hpp"

namespace plain::openmp {
namespace {

using namespace stencil;

class Stencil : public Version {
 public:
  explicit Stencil(StencilProblem const& problem)
      : problem_(problem), memory_(fields * problem.grid.field_size()) {}

  void reset() override {
    std::ranges::fill(memory_, std::numeric_limits<float>::quiet_NaN());
    std::ranges::copy(problem_.initial, first_row_of(u0));
  }

  void run() override {
    Grid const grid = problem_.grid;
    Range const all{0, grid.rows, 0, grid.levels};
#pragma omp parallel
    {
      u32 const thread = static_cast<u32>(omp_get_thread_num());
      u64 const threads = static_cast<u32>(omp_get_num_threads());
      Range const mine{static_cast<u32>(grid.rows * thread / threads),
                       static_cast<u32>(grid.rows * (thread + 1) / threads), 0, grid.levels};
      Threads const alone{0, 1, 0, 1};
      for (u32 step = 0; step < problem_.steps; ++step) {
        Stencils<float> const stencils{grid, view_of_device(grid, 0, memory_.data(), step, all)};
        stencils.do_laplacian(mine, alone);
#pragma omp barrier
        stencils.do_fluxes(mine, alone);
#pragma omp barrier
        stencils.do_update(mine, alone);
#pragma omp barrier
      }
    }
  }

  std::vector<std::byte> result() override {
    auto const begin = first_row_of(u0 + problem_.steps % 2);
    return bytes_of(std::vector<float>(begin, begin + static_cast<long>(problem_.initial.size())));
  }

 private:
  std::vector<float>::iterator first_row_of(u32 field) {
    auto const& grid = problem_.grid;
    return memory_.begin() + static_cast<long>(field * grid.field_size() + grid.offset(0, 0));
  }

  StencilProblem const& problem_;
  std::vector<float> memory_;
};

}  // namespace

std::unique_ptr<Version> make(StencilProblem const& problem) {
  return std::make_unique<Stencil>(problem);
}

}  // namespace plain::openmp
