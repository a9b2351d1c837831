#pragma once
#include "common/sparse/options.hpp"
#include "common/study/options.hpp"

namespace spmv {

/// The command line.
struct Options : meshpost::apps::StudyOptions {
  meshpost::apps::sparse::MatrixOptions matrix;
  meshpost::u32 products = 100;
};

/// \return the exit status: 1 if the versions differ
int run(Options const& options);

}  // namespace spmv
