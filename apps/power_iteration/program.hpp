#pragma once
#include <algorithm>
#include <optional>

#include "common/sparse/square_study.hpp"
#include "kernel.hpp"

namespace power {

using meshpost::apps::Exchange;

/// Both versions of the power iteration, over one World.
class Program : public sparse::SquareStudy {
 public:
  Program(meshpost::World& world, sparse::Problem const& problem, u32 iterations)
      : SquareStudy(world, problem, layout_of(problem, iterations).size(),
                    meshpost::Tags{Kernel::first_sum + problem.square().levels()}, Kernel::scratch),
        first_vector_(problem.vector(0)),
        first_factor_(first_factor(first_vector_)),
        kernel_{data_, matrix_, square_, layout_of(problem, iterations), n_, kept_} {}

  void reset() override;
  void run_kernel(meshpost::Launch const& launch) override;
  void step(Exchange& exchange, u32 number) override;
  u32 steps() const override { return layout().iterations; }
  /// The vector, normalised; then |A b| of each iteration.
  std::vector<std::byte> result() override;

  /// \throws Error(bad_argument) naming the iteration of the last run after which A b could not be
  /// normalised, in all processes
  void check_lengths() const;

 private:
  static Layout layout_of(sparse::Problem const& problem, u32 iterations) {
    return {(problem.most_rows() + 15) / 16 * 16, problem.square().side, problem.square().levels(),
            iterations};
  }
  Layout const& layout() const { return kernel_.layout; }
  void spread(Exchange& exchange, u32 number);
  void multiply(Exchange& exchange, u32 number);
  void measure(Exchange& exchange, u32 number);

  std::vector<double> first_vector_;
  double first_factor_;
  Kernel kernel_;
  std::optional<u32> failed_;  // iteration
};

}  // namespace power
