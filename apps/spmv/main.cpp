// Products of a sparse matrix with vectors, over a square of devices, in two versions: one kernel,
// and kernels with communication by the host.
#include <cstdio>
#include <span>

#include "common/files.hpp"
#include "common/sparse/matrix_app.hpp"
#include "program.hpp"

namespace {

using namespace meshpost;
using namespace meshpost::apps::sparse;

struct Options : apps::StudyOptions {
  MatrixOptions matrix;
  u32 products = 100;
};

int run(Options const& options) {
  World world(apps::world_of(options));
  auto const square = square_of(world, options.devices);
  Problem const problem(options.matrix, square, world.ranks_per_device(), 2);
  bool const first = world.process() == 0;
  if (first) dump(problem, options.matrix, (options.products - 1) % 2);
  spmv::Program program(world, problem, options.products);
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

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Products of a sparse matrix with vectors, over a square of devices"};
  apps::add_study(app, "spmv", options, {.check = "compare both versions, bit for bit"});
  add_matrix_options(app, options.matrix);
  app.add_option("--products", options.products, "how many, one after the other")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  return run_matrix_app(app, argc, argv, options, options.matrix, "spmv",
                        [&] { return run(options); });
}
