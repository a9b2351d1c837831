#pragma once
#include <nlohmann/json_fwd.hpp>

#include "problem.hpp"

namespace meshpost::apps::sparse {

/// Prints the row about the matrix, and returns what such studies have in their figures: {"n",
/// "entries", "side", "matrix"}.
nlohmann::json describe(Problem const& problem, MatrixOptions const& options);

}  // namespace meshpost::apps::sparse
