#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "common/study/study.hpp"
#include "problem.hpp"

// Rows and files of studies with a sparse matrix. Process 0 alone has them.

namespace meshpost::apps::sparse {

/// Prints the row about the matrix, and returns what such studies have in their figures: {"n",
/// "entries", "side", "matrix"}.
nlohmann::json describe(Problem const& problem, MatrixOptions const& options);

/// Prints the rows that all studies have. Writes `vector` as the result, and the figures of
/// report() with `own` ones.
/// \return the exit status: 1 if the versions differ
int conclude(World const& world, Problem const& problem, MatrixStudyOptions const& options,
             Comparison const& comparison, std::span<std::byte const> vector,
             nlohmann::json const& own);

}  // namespace meshpost::apps::sparse
