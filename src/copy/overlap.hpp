#pragma once
#include <span>
#include <vector>

#include "meshpost/copy/copy.hpp"

namespace meshpost::copying {

/// The relation of an entry of a list of copies to earlier ones. Two copies meet if one writes
/// bytes that the other reads or writes.
struct Dependence {
  static constexpr u32 none = ~0u;
  u32 meets = none;          ///< an earlier entry; none: it is independent
  std::vector<u32> after{};  ///< earlier entries to wait for before it begins
};

/// The order that gives a list the same result as one entry after the other. Independent entries
/// begin at once. The others begin in the list's order, each when those of its `after` are done. It
/// is exact to the byte, and looks only at addresses.
///
/// Each entry is in one `after` at most: entries that begin later need not wait for it again. So
/// all `after` together are no longer than the list. Without this, a thousand copies out of a block
/// and a thousand into it would give a million waits. For n entries it takes memory for n, and n
/// log n steps.
std::vector<Dependence> dependences(std::span<Segment const> segments);

}  // namespace meshpost::copying
