// Horizontal diffusion as an OpenMP loop over rows.
#include "diffusion/rows.hpp"
#include "plain/plain.hpp"

namespace plain::openmp {
namespace {

constexpr long halo = 2;

void step(std::vector<float> const& in, std::vector<float>& out, long rows, long levels,
          long columns) {
  long const down = levels * columns;
  auto const lap = [=](float const* p) {
    return 4 * p[0] - ((p[-1] + p[1]) + (p[down] + p[-down]));
  };
  auto const flux = [](float here, float there, float difference) {
    float const f = there - here;
    return f * difference > 0 ? 0 : f;
  };
#pragma omp parallel for schedule(static)
  for (long row = halo; row < rows - halo; ++row)
    for (long level = 0; level < levels; ++level) {
      float const* const from = in.data() + row * down + level * columns;
      float* const to = out.data() + row * down + level * columns;
      for (long i = halo; i < columns - halo; ++i) {
        float const* const u = from + i;
        float const middle = lap(u);
        float const east = flux(middle, lap(u + 1), u[1] - u[0]);
        float const west = flux(lap(u - 1), middle, u[0] - u[-1]);
        float const north = flux(middle, lap(u + down), u[down] - u[0]);
        float const south = flux(lap(u - down), middle, u[0] - u[-down]);
        to[i] = u[0] - 0.025f * ((east - west) + (north - south));
      }
    }
}

class Diffusion : public Version {
 public:
  explicit Diffusion(DiffusionProblem const& problem)
      : problem_(problem), initial_(diffusion::rows_of<float>(problem.field)) {}

  // The outer points keep their values, so no step writes them.
  void reset() override { in_ = out_ = initial_; }

  void run() override {
    auto const& field = problem_.field;
    for (u32 n = 0; n < problem_.steps; ++n) {
      step(in_, out_, field.rows, field.levels, field.columns);
      std::swap(in_, out_);
    }
  }

  std::vector<std::byte> result() override {
    diffusion::Field field = problem_.field;
    diffusion::store_rows(in_, field);
    return bytes_of(field.values);
  }

 private:
  DiffusionProblem const& problem_;
  std::vector<float> initial_, in_, out_;
};

}  // namespace

std::unique_ptr<Version> make(DiffusionProblem const& problem) {
  return std::make_unique<Diffusion>(problem);
}

}  // namespace plain::openmp
