// The largest eigenvalue of a sparse matrix by power iteration, over a square of devices, in two
// versions: one kernel, and kernels with communication by the host.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "common/sparse/describe.hpp"
#include "program.hpp"
#include "run.hpp"

namespace power {

using namespace meshpost;
using namespace meshpost::apps::sparse;

int run(MatrixStudyOptions const& options) {
  World world(apps::world_of(options));
  auto const square = square_of(world, options.devices);
  Problem const problem(options.matrix, square, world.ranks_per_device(), group);
  bool const first = world.process() == 0;
  if (first) dump(problem, options.matrix, 0);
  Program program(world, problem, options.steps);
  auto const comparison = compare(world, program, options);
  program.check_lengths();
  if (!first) return comparison.identical ? 0 : 1;

  auto const vector = std::span(comparison.result).first(problem.n() * sizeof(double));
  std::vector<double> lengths(options.steps);
  std::memcpy(lengths.data(), comparison.result.data() + vector.size(),
              lengths.size() * sizeof(double));
  auto own = describe(problem, options.matrix);
  own["lengths"] = lengths;
  std::printf("eigenvalue  %.15g, the length of A b in iteration %u\n", lengths.back(),
              options.steps);
  if (lengths.size() > 1)
    std::printf("            the one before differs by %.2g of it\n",
                std::abs(lengths[lengths.size() - 2] / lengths.back() - 1));
  return conclude(world, problem, options, comparison, vector, own);
}

}  // namespace power
