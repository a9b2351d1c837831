#pragma once
#include <string>

#include "common/command.hpp"
#include "common/sparse/options.hpp"
#include "particles/options.hpp"

namespace plain {

/// The command line.
struct Options : meshpost::apps::Common {
  std::string study;  ///< "stencil"
  std::string on = "cpu", output, input = "random:26x320x128:1";
  meshpost::u32 repetitions = 20, steps = 0, levels = 26, rows = 320, columns = 128, seed = 1;
  particles::Options particles;
  meshpost::apps::sparse::MatrixOptions matrix;
};

/// \return the exit status: 1 if results differ
int run(Options options);

}  // namespace plain
