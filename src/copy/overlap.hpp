#pragma once
#include <span>
#include <vector>

#include "meshpost/copy/copy.hpp"

namespace meshpost::copying {

/// For each entry of a list, the earlier ones that must be done before it begins, so that the result
/// is that of the list in order: it writes what they read or write, or reads what they write. Those
/// that follow through others are left out. Exact to the byte; looks only at addresses.
std::vector<std::vector<u32>> dependences(std::span<Segment const> segments);

}  // namespace meshpost::copying
