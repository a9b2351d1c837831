// The stencil as three kernels a step, a line of a row and a level for each warp.
#include "gpu.hpp"

namespace plain::cuda {
namespace {

using namespace stencil;

template <Stage stage>
__global__ void __launch_bounds__(block) do_stage(Stencils<float> const stencils) {
  auto const& grid = stencils.grid;
  stencils.template run<stage>(
      {0, grid.rows, 0, grid.levels},
      Threads::of(grid, static_cast<u32>(thread()), static_cast<u32>(gridDim.x * block)));
}

class Stencil : public Version {
 public:
  explicit Stencil(StencilProblem const& problem)
      : problem_(problem), memory_(fields * problem.grid.field_size()), graph_([&](auto stream) {
          Grid const grid = problem.grid;
          u32 const lines = blocks(u64{grid.rows} * grid.levels * (grid.columns % 4 ? 1 : 32));
          for (u32 step = 0; step < problem.steps; ++step) {
            Stencils<float> const on{grid, view_of_device(grid, 0, memory_.data(), step,
                                                          {0, grid.rows, 0, grid.levels})};
            do_stage<Stage::laplacian><<<lines, block, 0, stream>>>(on);
            do_stage<Stage::fluxes><<<lines, block, 0, stream>>>(on);
            do_stage<Stage::update><<<lines, block, 0, stream>>>(on);
          }
        }) {}

  void reset() override {
    memory_.poison();
    memory_.write(problem_.initial, first_row_of(u0));
  }
  void run() override { graph_.run(); }
  std::vector<std::byte> result() override {
    return bytes_of(memory_.read(first_row_of(u0 + problem_.steps % 2), problem_.initial.size()));
  }

 private:
  u64 first_row_of(u32 field) const {
    return field * problem_.grid.field_size() + problem_.grid.offset(0, 0);
  }

  StencilProblem const& problem_;
  Array<float> memory_;
  Graph graph_;
};

}  // namespace

std::unique_ptr<Version> make(StencilProblem const& problem) {
  return std::make_unique<Stencil>(problem);
}

}  // namespace plain::cuda
