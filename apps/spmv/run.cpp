// Products of a sparse matrix with vectors, over a square of devices, in two versions: one kernel,
// and kernels with communication by the host.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "common/files.hpp"
#include "common/sparse/describe.hpp"
#include "options.hpp"
#include "program.hpp"

namespace spmv {

using namespace meshpost;
using namespace meshpost::apps::sparse;

int run(Options const& options) {
  World world(apps::world_of(options));
  auto const square = square_of(world, options.devices);
  Problem const problem(options.matrix, square, world.ranks_per_device(), 2);
  bool const first = world.process() == 0;
  if (first) dump(problem, options.matrix, (options.products - 1) % 2);
  Program program(world, problem, options.products);
  auto const comparison = compare(world, program, options);
  if (!first) return comparison.identical ? 0 : 1;

  auto const matrix = describe(problem, options.matrix);
  std::printf("products    %u\n", options.products);
  auto figures = report(world, comparison, options);
  if (!options.output.empty())
    apps::write_npy(options.output, "<f8", {problem.n()}, comparison.result);
  figures.update(matrix);
  figures.update({{"steps", options.products}});
  if (!options.json.empty()) apps::write_figures(options.json, figures);
  return comparison.identical ? 0 : 1;
}

}  // namespace spmv
