#include "troubles.hpp"

#include <cstdio>
#include <tuple>

namespace particles {

using meshpost::Error;
using meshpost::Kind;

Trouble earlier(Trouble const& a, Trouble const& b) {
  if (a.what == Trouble::none || b.what == Trouble::none) return a.what == Trouble::none ? b : a;
  bool const first = std::tie(a.step, a.segment, a.who) < std::tie(b.step, b.segment, b.who);
  return first ? a : b;
}

void throw_for(Trouble const& trouble, Problem const& problem, double reach) {
  if (trouble.what == Trouble::none) return;
  std::string const segment = "segment " + std::to_string(trouble.segment);
  std::string const step = " in step " + std::to_string(trouble.step);
  if (trouble.what == Trouble::overflow)
    throw Error(Kind::bad_argument, "--capacity " + std::to_string(problem.capacity()),
                segment + " gets " + std::to_string(trouble.who) + " particles" + step,
                "choose a larger one");
  char given[32], far[32], limit[48];
  std::snprintf(given, sizeof given, "--dt %g", problem.dt);
  std::snprintf(far, sizeof far, " went %.4g", trouble.much);
  std::snprintf(limit, sizeof limit, ", and %.4g is the limit", reach);
  throw Error(Kind::bad_argument, given,
              "particle " + std::to_string(trouble.who) + " of " + segment + far + step + limit,
              "choose a smaller one");
}

}  // namespace particles
