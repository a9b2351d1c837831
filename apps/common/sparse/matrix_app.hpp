#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "problem.hpp"

// The main program of studies with a sparse matrix.

namespace meshpost::apps::sparse {

/// Prints the row about the matrix, and returns what such studies have in their figures: {"n",
/// "entries", "side", "matrix"}.
nlohmann::json describe(Problem const& problem, MatrixOptions const& options);

/// run_app(), with an error that names the matrix if the host's memory is used up.
int run_matrix_app(CLI::App& app, int argc, char** argv, Common& common,
                   MatrixOptions const& options, std::string const& name,
                   std::function<int()> const& work);

}  // namespace meshpost::apps::sparse
