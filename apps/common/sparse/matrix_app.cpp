#include "matrix_app.hpp"

#include <cstdio>
#include <new>

namespace meshpost::apps::sparse {

nlohmann::json describe(Problem const& problem, MatrixOptions const& options) {
  u32 const n = problem.n(), side = problem.square().side;
  u64 const entries = problem.entries();
  std::printf("matrix      %u x %u, %llu entries, in %u x %u blocks\n", n, n,
              static_cast<unsigned long long>(entries), side, side);
  return {{"n", n}, {"entries", entries}, {"side", side}, {"matrix", options.file}};
}

int run_matrix_app(CLI::App& app, int argc, char** argv, Common& common,
                   MatrixOptions const& options, std::string const& name,
                   std::function<int()> const& work) {
  return run_app(app, argc, argv, common, name, "--size", [&] {
    try {
      return work();
    } catch (std::bad_alloc const&) {
      throw Error(Kind::out_of_memory,
                  options.file.empty() ? "--size " + std::to_string(options.size)
                                       : "--matrix " + options.file,
                  "the host's memory is used up", "choose a smaller matrix");
    }
  });
}

}  // namespace meshpost::apps::sparse
