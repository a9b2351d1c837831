#pragma once
#include <optional>
#include <string>

#include "meshpost/base/types.hpp"
#include "world/job.hpp"

namespace meshpost::compat {

/// The options in a dCUDA program's command line.
struct DcudaOptions {
  std::optional<u32> device;       ///< -d
  u32 process = 0, processes = 1;  ///< -p, -n
  std::string leader;              ///< -r: host, or host:port, of process 0; empty: this host
};

/// Port of process 0 if -r names only a host.
inline constexpr u32 dcuda_port = 7411;

/// Finds the thesis's options (its section 4) among the program's own, which it leaves alone.
/// \throws Error(bad_argument) for an option that is unknown or impossible
DcudaOptions parse_dcuda_options(int argc, char const* const* argv);

/// The environment that a launcher would have made for these options. Processes that were started
/// from one session of a host meet by a file, others at the leader's port.
Variables variables_of(DcudaOptions const& options, Variables const& environment);

}  // namespace meshpost::compat
