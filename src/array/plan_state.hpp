#pragma once
#include "meshpost/array/plan.hpp"

namespace meshpost {

struct Plan::State {
  Distribution distribution;
  u32 first = 0;                  ///< part of this process
  std::vector<PartPlan> parts{};  ///< of this process
  std::vector<u32> processes{};   ///< by part of the array
  u32 process = 0;                ///< this one
  Most most{};
  u64 fingerprint = 0;
  std::vector<ExposedPart> ways{};  ///< by process: how this one reaches its memory
};

}  // namespace meshpost
