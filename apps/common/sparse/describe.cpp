#include "describe.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/figures.hpp"

namespace meshpost::apps::sparse {

nlohmann::json describe(Problem const& problem, MatrixOptions const& options) {
  u32 const n = problem.n(), side = problem.square().side;
  u64 const entries = problem.entries();
  std::printf("matrix      %u x %u, %llu entries, in %u x %u blocks\n", n, n,
              static_cast<unsigned long long>(entries), side, side);
  return {{"n", n}, {"entries", entries}, {"side", side}, {"matrix", options.file}};
}

int conclude(World const& world, Problem const& problem, MatrixStudyOptions const& options,
             Comparison const& comparison, std::span<std::byte const> vector,
             nlohmann::json const& own) {
  auto figures = report(world, comparison, options);
  if (!options.output.empty()) write_npy(options.output, "<f8", {problem.n()}, vector);
  figures.update(own);
  figures["steps"] = options.steps;
  if (!options.json.empty()) write_figures(options.json, figures);
  return comparison.identical ? 0 : 1;
}

}  // namespace meshpost::apps::sparse
