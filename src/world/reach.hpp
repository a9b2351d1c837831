#pragma once
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// Processes of a host that can't map each other's memory: the consequences, and the warnings.
// Plain values: nothing here tries anything.

namespace meshpost {

/// A process that could not map a device's memory of another one of its node.
struct Refusal {
  u32 process = 0;     ///< the one that could not map it
  u32 owner = 0;       ///< of the device
  std::string device;  ///< "cuda:0": its owner's name for it
  std::string kind;
  Error error;
};

/// Puts processes into groups whose members all map each other's memory of devices of that kind.
/// Returns the group of each process.
std::vector<u32> groups_that_map(std::vector<Refusal> const& refusals, std::string_view kind,
                                 u32 processes);

/// Processes of one host that share no memory, as `process` found out.
struct SeparatePair {
  u32 process = 0, other = 0;
  std::string why;
};

/// One warning for all refusals, and one for all pairs. Each names its first case. `names`: of the
/// processes.
std::vector<std::string> slow_paths(std::vector<Refusal> const& refusals,
                                    std::vector<SeparatePair> const& separate,
                                    std::vector<std::string> const& names);

}  // namespace meshpost
