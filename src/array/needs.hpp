#pragma once
#include "array/part_owners.hpp"
#include "meshpost/array/plan.hpp"

namespace meshpost {

/// Those of the indices that belong to other parts, each once.
/// \throws Error(bad_argument) if there is no such element
std::vector<u64> others_among(Distribution const& distribution, u32 part,
                              std::span<u64 const> indices);
/// The same of the columns of a pattern. \throws also for offsets that descend or leave the columns
std::vector<u64> others_in(Distribution const& distribution, u32 part,
                           Plan::Pattern const& pattern);

}  // namespace meshpost
