// The largest eigenvalue of a sparse matrix by power iteration, over a square of devices, in two
// versions: one kernel, and kernels with communication by the host.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>

#include "common/files.hpp"
#include "common/sparse/matrix_app.hpp"
#include "program.hpp"

namespace {

using namespace meshpost;
using namespace meshpost::apps::sparse;

struct Options : apps::StudyOptions {
  MatrixOptions matrix;
  u32 iterations = 100;
};

int run(Options const& options) {
  World world(apps::world_of(options));
  auto const square = square_of(world, options.devices);
  Problem const problem(options.matrix, square, world.ranks_per_device(), power::group);
  bool const first = world.process() == 0;
  if (first) dump(problem, options.matrix, 0);
  power::Program program(world, problem, options.iterations);
  auto const comparison = compare(world, program, options);
  program.check_lengths();
  if (!first) return comparison.identical ? 0 : 1;

  auto const vector = std::span(comparison.result).first(problem.n() * sizeof(double));
  std::vector<double> lengths(options.iterations);
  std::memcpy(lengths.data(), comparison.result.data() + vector.size(),
              lengths.size() * sizeof(double));
  auto const matrix = describe(problem, options.matrix);
  std::printf("eigenvalue  %.15g, the length of A b in iteration %u\n", lengths.back(),
              options.iterations);
  if (lengths.size() > 1)
    std::printf("            the one before differs by %.2g of it\n",
                std::abs(lengths[lengths.size() - 2] / lengths.back() - 1));
  auto figures = report(world, comparison, options);
  if (!options.output.empty()) apps::write_npy(options.output, "<f8", {problem.n()}, vector);
  figures.update(matrix);
  figures.update({{"lengths", lengths}, {"steps", options.iterations}});
  if (!options.json.empty()) apps::write_figures(options.json, figures);
  return comparison.identical ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"The largest eigenvalue of a sparse matrix, over a square of devices"};
  apps::add_study(app, "power_iteration", options, {.check = "compare both versions, bit for bit"});
  add_matrix_options(app, options.matrix);
  app.add_option("--iterations", options.iterations, "how many")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  return run_matrix_app(app, argc, argv, options, options.matrix, "power_iteration",
                        [&] { return run(options); });
}
