#include "pipeline/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/base/error.hpp"

namespace meshpost::pipelining {

bool Distribution::exposed(u32 buffer) const {
  bool const as_target = buffer > 0 && runners[buffer - 1] != buffers[buffer];
  bool const as_source = buffer < runners.size() && runners[buffer] != buffers[buffer];
  return as_target || as_source;
}

std::vector<u32> Distribution::listeners(u32 leg) const {
  std::vector<u32> all;
  auto const add = [&](u32 other) {
    if (runners[other] != runners[leg] && std::ranges::find(all, runners[other]) == all.end())
      all.push_back(runners[other]);
  };
  if (leg > 0) add(leg - 1);
  if (leg + 1 < runners.size()) add(leg + 1);
  return all;
}

Distribution distribute(Schedule const& schedule, std::vector<u32> const& levels) {
  Distribution all;
  for (auto const& buffer : schedule.buffers) all.buffers.push_back(levels[buffer.level]);
  for (u32 leg = 0; leg < schedule.legs.size(); ++leg) {
    bool const from_user = schedule.buffers[leg].users, to_user = schedule.buffers[leg + 1].users;
    if (all.crosses(leg) && from_user && to_user)
      throw Error(
          Kind::bad_argument, "make a pipeline",
          fmt::format("{} goes from your memory in process {} to your memory in process {}",
                      to_string(schedule.legs[leg]), all.buffers[leg], all.buffers[leg + 1]),
          "put a level of either process between the two");
    all.runners.push_back(all.buffers[to_user ? leg + 1 : leg]);
  }
  return all;
}

}  // namespace meshpost::pipelining
