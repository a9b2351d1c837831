#pragma once
#include <string>
#include <vector>

#include "meshpost/base/error.hpp"
#include "meshpost/base/types.hpp"

// Processes of a host that can't map each other's memory: what follows, and what to say of it.
// Plain values: nothing here tries anything.

namespace meshpost {

/// A process that could not map a device's memory of another one of its node.
struct Refusal {
  u32 process = 0;     ///< that could not
  u32 owner = 0;       ///< of the device
  std::string device;  ///< "cuda:0": what its owner calls it
  std::string kind;
  Error error;
};

/// The processes in groups all of whose members map each other's memory of devices of that kind:
/// the number of each one's.
std::vector<u32> groups_that_map(std::vector<Refusal> const& refusals, std::string_view kind,
                                 u32 processes);

/// Processes of one host that share no memory, as `process` found out.
struct SeparatePair {
  u32 process = 0, other = 0;
  std::string why;
};

/// One warning for all refusals, and one for all pairs, each of which names the first. `names`: of
/// the processes.
std::vector<std::string> slow_paths(std::vector<Refusal> const& refusals,
                                    std::vector<SeparatePair> const& separate,
                                    std::vector<std::string> const& names);

}  // namespace meshpost
