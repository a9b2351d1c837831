#pragma once
#include <optional>

#include "meshpost/array/plan.hpp"
#include "world/process_group.hpp"

namespace meshpost {

struct Plan::State {
  Distribution distribution;
  u32 first = 0;                  ///< part of this process
  std::vector<PartPlan> parts{};  ///< of this process
  std::vector<u32> processes{};   ///< by part of the array
  u32 process = 0;                ///< this one
  Most most{};
  u64 fingerprint = 0;
  std::vector<bool> near{};  ///< by process: in reach of this one's loads and stores
  struct Frames {
    Boxes boxes;
    BoxHalo halo;
  };
  std::optional<Frames> frames{};  ///< of a plan from boxes

  static constexpr u32 elsewhere = ~u32{0};  ///< another process, which is not known
};

inline std::vector<bool> near_in(ProcessGroup const& group) {
  std::vector<bool> near(group.count());
  for (u32 process = 0; process < near.size(); ++process) near[process] = !group.far(process);
  return near;
}

}  // namespace meshpost
