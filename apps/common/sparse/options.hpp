#pragma once
#include <meshpost/base/types.hpp>

#include <functional>
#include <string>

#include "common/study/options.hpp"

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

/// The command line of a study.
struct MatrixStudyOptions : StudyOptions {
  MatrixOptions matrix;
  u32 steps = 100;
};

/// Adds all options. `steps`: the study's name for their number, such as "--products", and its
/// help.
void add_matrix_study(CLI::App& app, std::string const& name, MatrixStudyOptions& options,
                      std::string const& steps, std::string const& help);

/// run_app(), with an error that names the matrix if the host's memory is used up.
int run_matrix_study(CLI::App& app, int argc, char** argv, MatrixStudyOptions& options,
                     std::string const& name, std::function<int()> const& work);

}  // namespace meshpost::apps::sparse
