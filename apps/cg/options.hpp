#pragma once
#include <string>
#include <vector>

#include "common/command.hpp"
#include "matrix.hpp"
#include "outcome.hpp"

namespace cg {

/// The command line.
struct Options : meshpost::apps::Common {
  MatrixOptions matrix;
  Limits limits{1000, 1e-8};
  std::string mode = "all", against = "auto";
  std::vector<double> shares;
  u64 seed = 1;
  u32 repetitions = 3;
  u32 lanes = 0;       ///< threads of a GPU that share a row; 0: by the mean length of rows
  u32 threads = 1024;  ///< of the ranks of a multiprocessor together
  bool cusparse = true;
  std::string output, trace;
};

/// \return the exit status: 1 if a mode is wrong, or does not converge
int run(Options const& options);

}  // namespace cg
