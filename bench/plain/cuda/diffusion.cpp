// Horizontal diffusion as a kernel a step, four points a thread.
#include "diffusion/kernel.hpp"
#include "diffusion/rows.hpp"
#include "gpu.hpp"

namespace plain::cuda {
namespace {

__global__ void __launch_bounds__(block)
    do_step(diffusion::Scheme<float> const at, float const* in, float* out) {
  auto const& shape = at.shape;
  u32 const size = static_cast<u32>(shape.row_size()), i = static_cast<u32>(thread());
  if (shape.columns % 4 == 0) {
    if (i >= size / 4 * shape.rows) return;
    u32 const row = i / (size / 4), column = 4 * i % shape.columns;
    at.next_four(in + 4 * u64{i}, row, column, size).store(out + 4 * u64{i});
  } else if (i < size * shape.rows) {
    out[i] = at.next(in + i, i / size, i % shape.columns, size);
  }
}

class Diffusion : public Version {
 public:
  explicit Diffusion(DiffusionProblem const& problem)
      : problem_(problem),
        initial_(diffusion::rows_of<float>(problem.field)),
        one_(initial_.size()),
        other_(initial_.size()),
        graph_([&](auto stream) {
          auto const& field = problem.field;
          diffusion::Shape const shape{field.levels, field.rows, field.columns, 1, 1};
          diffusion::Scheme<float> const at{shape, 1.0f};
          float *in = one_.data(), *out = other_.data();
          u32 const count = blocks(initial_.size() / (field.columns % 4 ? 1 : 4));
          for (u32 step = 0; step < problem.steps; ++step) {
            do_step<<<count, block, 0, stream>>>(at, in, out);
            std::swap(in, out);
          }
        }) {}

  void reset() override {
    one_.write(initial_, 0);
    other_.poison();
  }
  void run() override { graph_.run(); }
  std::vector<std::byte> result() override {
    diffusion::Field field = problem_.field;
    auto const& last = problem_.steps % 2 ? other_ : one_;
    diffusion::store_rows(last.read(0, initial_.size()), field);
    return bytes_of(field.values);
  }

 private:
  DiffusionProblem const& problem_;
  std::vector<float> initial_;
  Array<float> one_, other_;
  Graph graph_;
};

}  // namespace

std::unique_ptr<Version> make(DiffusionProblem const& problem) {
  return std::make_unique<Diffusion>(problem);
}

}  // namespace plain::cuda
