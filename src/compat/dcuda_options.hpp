#pragma once
#include <optional>

#include "meshpost/base/types.hpp"

namespace meshpost::compat {

/// What a dCUDA program's command line asks for.
struct DcudaOptions {
  std::optional<u32> device;  ///< -d
};

/// Finds the thesis's options (its section 4) among the program's own, which it leaves alone.
/// \throws Error(bad_argument) for one that is not understood or asks for more than one process
DcudaOptions parse_dcuda_options(int argc, char const* const* argv);

}  // namespace meshpost::compat
