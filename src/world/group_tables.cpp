#include "meshpost/world/group_tables.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace meshpost {

GroupTables make_groups(std::vector<i64> const& color_of_rank, u32 ranks_per_device) {
  std::map<i64, std::vector<u32>> ranks_of;
  for (u32 rank = 0; rank < color_of_rank.size(); ++rank)
    if (color_of_rank[rank] >= 0) ranks_of[color_of_rank[rank]].push_back(rank);

  GroupTables tables;
  tables.groups.resize(color_of_rank.size(), Group{});
  for (auto const& [color, ranks] : ranks_of) {
    auto const device = [&](u32 rank) { return rank / ranks_per_device; };
    std::set<u32> devices;
    std::vector<u32> first(ranks.size());  // by number in the group: the first on the same device
    std::vector<u32> place(ranks.size());
    for (u32 index = 0; index < ranks.size(); ++index) {
      bool const another = devices.insert(device(ranks[index])).second;
      first[index] = another ? index : first[index - 1];
      place[index] = static_cast<u32>(devices.size()) - 1;
    }
    for (u32 index = 0; index < ranks.size(); ++index) {
      auto const same_device = [&](u32 other) { return device(other) == device(ranks[index]); };
      tables.groups[ranks[index]] = {tables.group_count,
                                     index,
                                     static_cast<u32>(ranks.size()),
                                     static_cast<u32>(std::ranges::count_if(ranks, same_device)),
                                     static_cast<u32>(devices.size()),
                                     static_cast<u32>(tables.members.size()),
                                     static_cast<u32>(tables.places.size()),
                                     first[index],
                                     place[index]};
    }
    tables.members.insert(tables.members.end(), ranks.begin(), ranks.end());
    tables.places.insert(tables.places.end(), devices.begin(), devices.end());
    ++tables.group_count;
  }
  return tables;
}

}  // namespace meshpost
