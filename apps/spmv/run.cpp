// Products of a sparse matrix with vectors, over a square of devices, in two versions: one kernel,
// and kernels with communication by the host.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/sparse/describe.hpp"
#include "program.hpp"
#include "run.hpp"

namespace spmv {

using namespace meshpost;
using namespace meshpost::apps::sparse;

int run(MatrixStudyOptions const& options) {
  World world(apps::world_of(options));
  auto const square = square_of(world, options.devices);
  Problem const problem(options.matrix, square, world.ranks_per_device(), 2);
  bool const first = world.process() == 0;
  if (first) dump(problem, options.matrix, (options.steps - 1) % 2);
  Program program(world, problem, options.steps);
  auto const comparison = compare(world, program, options);
  if (!first) return comparison.identical ? 0 : 1;

  auto const own = describe(problem, options.matrix);
  std::printf("products    %u\n", options.steps);
  return conclude(world, problem, options, comparison, comparison.result, own);
}

}  // namespace spmv
