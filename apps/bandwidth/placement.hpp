#pragma once
#include <meshpost/base/types.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace bandwidth {

/// The numbers in a list of the kernel: "0-2,8" is 0, 1, 2 and 8. Other text ends the list.
std::vector<meshpost::u32> numbers_in(std::string const& list);

/// The node that --cpu-node gives to a process: one for all, or one for each in turn.
/// \throws Error(bad_argument) if there are more nodes than processes
meshpost::u32 node_of_process(std::vector<meshpost::u32> const& nodes, meshpost::u32 process,
                              meshpost::u32 processes);

/// From now on all threads of this process run only on those of its cores that belong to NUMA node
/// `node`, and so do threads that start later. `nodes`: where the kernel describes them.
/// \throws Error(bad_argument) if there is no such node, or the process may use none of its cores
void run_on_node(meshpost::u32 node,
                 std::filesystem::path const& nodes = "/sys/devices/system/node");

}  // namespace bandwidth
