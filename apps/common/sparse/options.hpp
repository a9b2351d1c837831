#pragma once
#include <meshpost/base/types.hpp>

#include <functional>
#include <string>

#include "common/command.hpp"

// The command line of studies with a sparse matrix.

namespace meshpost::apps::sparse {

struct MatrixOptions {
  u32 size = 10816;  ///< rows and columns of a block
  double density = 0.003;
  std::string file;  ///< Matrix Market; empty: a random matrix
  u64 seed = 1;
  std::string dump;  ///< folder for the matrix and the vectors; empty: none
};

void add_matrix_options(CLI::App& app, MatrixOptions& options);

/// run_app(), with an error that names the matrix if the host's memory is used up.
int run_matrix_app(CLI::App& app, int argc, char** argv, Common& common,
                   MatrixOptions const& options, std::string const& name,
                   std::function<int()> const& work);

}  // namespace meshpost::apps::sparse
