#pragma once
#include <functional>
#include <vector>

#include "meshpost/world/communicator.hpp"

namespace meshpost {

/// The tables of a communicator. A plain value, computed without a device.
struct GroupTables {
  std::vector<Group> groups;  ///< by world rank
  std::vector<u32> members;   ///< world ranks, group after group
  std::vector<u32> places;    ///< devices, group after group
  u32 group_count = 0;
};

/// Ranks of equal color form a group, in the order of their world ranks. A rank of negative color
/// is in no group.
GroupTables make_groups(std::vector<i64> const& color_of_rank, u32 ranks_per_device);

}  // namespace meshpost
