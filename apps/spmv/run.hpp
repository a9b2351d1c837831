#pragma once
#include "common/sparse/options.hpp"

namespace spmv {

/// \return the exit status: 1 if the versions differ
int run(meshpost::apps::sparse::MatrixStudyOptions const& options);

}  // namespace spmv
