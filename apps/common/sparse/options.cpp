#include "common/sparse/options.hpp"

#include <meshpost/base/error.hpp>

#include <CLI/CLI.hpp>
#include <new>

namespace meshpost::apps::sparse {

void add_matrix_options(CLI::App& app, MatrixOptions& options) {
  auto* const size = app.add_option("--size", options.size,
                                    "rows and columns of each device's block of a random matrix")
                         ->capture_default_str()
                         ->check(CLI::Range(1u, 1'000'000'000u));
  auto* const density =
      app.add_option("--density", options.density, "share of its elements that are not zero")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 1.0));
  app.add_option("--matrix", options.file, "Matrix Market file to take instead of a random matrix")
      ->excludes(size)
      ->excludes(density);
  app.add_option("--seed", options.seed, "number that random values depend on")
      ->capture_default_str();
  app.add_option("--dump", options.dump, "folder for the matrix and the vectors, as .npy");
}

void add_matrix_study(CLI::App& app, std::string const& name, MatrixStudyOptions& options,
                      std::string const& steps, std::string const& help) {
  add_study(app, name, options, {.check = "compare both versions, bit for bit"});
  add_matrix_options(app, options.matrix);
  app.add_option(steps, options.steps, help)
      ->capture_default_str()
      ->check(CLI::Range(1u, 1'000'000u));
}

int run_matrix_study(CLI::App& app, int argc, char** argv, MatrixStudyOptions& options,
                     std::string const& name, std::function<int()> const& work) {
  return run_app(app, argc, argv, options, name, "--size", [&] {
    try {
      return work();
    } catch (std::bad_alloc const&) {
      throw Error(Kind::out_of_memory,
                  options.matrix.file.empty() ? "--size " + std::to_string(options.matrix.size)
                                              : "--matrix " + options.matrix.file,
                  "the host's memory is used up", "choose a smaller matrix");
    }
  });
}

}  // namespace meshpost::apps::sparse
