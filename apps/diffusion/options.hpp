#pragma once
#include <string>

#include "common/command.hpp"

namespace diffusion {

/// The command line.
struct Options : meshpost::apps::Common {
  std::string input, output, precision = "float", scheme = "gridtools", trace;
  unsigned iterations = 100;
};

/// \return the exit status: 1 if the result is wrong
/// \throws Error(out_of_memory) naming the field
int run(Options const& options);

}  // namespace diffusion
