#pragma once
#include <span>
#include <vector>

#include "meshpost/copy/copy.hpp"

namespace meshpost::copying {

/// What an entry of a list of copies has to do with earlier ones. Two copies meet if one writes
/// what the other reads or writes.
struct Dependence {
  static constexpr u32 none = ~0u;
  u32 meets = none;          ///< an earlier entry; none: it is independent
  std::vector<u32> after{};  ///< earlier entries to wait for before it begins
};

/// How to do a list so that the result is that of the list in order: independent entries begin at
/// once; the others begin in the list's order, each when those of its `after` are done. Exact to
/// the byte; looks only at addresses.
///
/// An entry is waited for once: those that begin later need not wait again. So all `after` together
/// are no longer than the list, though a thousand copies out of a block and a thousand into it meet
/// a million times. For n entries it takes memory for n, and n log n steps.
std::vector<Dependence> dependences(std::span<Segment const> segments);

}  // namespace meshpost::copying
