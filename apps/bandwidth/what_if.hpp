#pragma once
#include "options.hpp"

namespace bandwidth {

/// --what-if: predicts for the machine in a file, and compares with another one if that is known:
/// --against, else this machine if the file was of it before it was edited. Copies nothing.
/// Returns the exit status. \throws Error(bad_argument)
int run_what_if(Options const& options);

}  // namespace bandwidth
