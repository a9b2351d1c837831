// The command line of spmv.
#include <CLI/CLI.hpp>

#include "run.hpp"

int main(int argc, char** argv) {
  using namespace meshpost::apps::sparse;
  MatrixStudyOptions options;
  CLI::App app{"Products of a sparse matrix with vectors, over a square of devices"};
  add_matrix_study(app, "spmv", options, "--products", "how many, one after the other");
  return run_matrix_study(app, argc, argv, options, "spmv", [&] { return spmv::run(options); });
}
