// The command line of spmv.
#include <CLI/CLI.hpp>

#include "options.hpp"

int main(int argc, char** argv) {
  using namespace meshpost;
  spmv::Options options;
  CLI::App app{"Products of a sparse matrix with vectors, over a square of devices"};
  apps::add_study(app, "spmv", options, {.check = "compare both versions, bit for bit"});
  apps::sparse::add_matrix_options(app, options.matrix);
  app.add_option("--products", options.products, "how many, one after the other")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
  return apps::sparse::run_matrix_app(app, argc, argv, options, options.matrix, "spmv",
                                      [&] { return spmv::run(options); });
}
