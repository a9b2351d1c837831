// The command line of power_iteration.
#include <CLI/CLI.hpp>

#include "run.hpp"

int main(int argc, char** argv) {
  using namespace meshpost::apps::sparse;
  MatrixStudyOptions options;
  CLI::App app{"The largest eigenvalue of a sparse matrix, over a square of devices"};
  add_matrix_study(app, "power_iteration", options, "--iterations", "how many");
  return run_matrix_study(app, argc, argv, options, "power_iteration",
                          [&] { return power::run(options); });
}
