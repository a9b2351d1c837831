#include "describe.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace meshpost::apps::sparse {

nlohmann::json describe(Problem const& problem, MatrixOptions const& options) {
  u32 const n = problem.n(), side = problem.square().side;
  u64 const entries = problem.entries();
  std::printf("matrix      %u x %u, %llu entries, in %u x %u blocks\n", n, n,
              static_cast<unsigned long long>(entries), side, side);
  return {{"n", n}, {"entries", entries}, {"side", side}, {"matrix", options.file}};
}

}  // namespace meshpost::apps::sparse
