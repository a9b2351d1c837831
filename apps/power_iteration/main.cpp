// The command line of power_iteration.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  power::Options options;
  CLI::App app{"The largest eigenvalue of a sparse matrix, over a square of devices"};
  apps::add_study(app, "power_iteration", options, {.check = "compare both versions, bit for bit"});
  apps::sparse::add_matrix_options(app, options.matrix);
  app.add_option("--iterations", options.iterations, "how many")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  return apps::sparse::run_matrix_app(app, argc, argv, options, options.matrix, "power_iteration",
                                      [&] { return power::run(options); });
}
