#pragma once
#include <string>
#include <vector>

#include "meshpost/fabric/machine.hpp"

namespace meshpost {

/// A chain of links that carries a share of the bytes in chunks. While one chunk is on a link, the
/// next one is on the link before it.
struct Chain {
  std::vector<u32> links;  ///< positions in Machine::links
  Bytes share{};           ///< bytes that go this way
  Bytes chunk{};           ///< at a time; over a single link the whole share
};

/// The way of one copy. A plain value: print and compare it without a device.
struct Route {
  std::vector<Chain> chains;  ///< at the same time, disjoint except for the two ends
  double predicted = 0;       ///< seconds
};

/// Smaller copies go straight, by one link: a chunk of the smallest size would be most of the copy.
inline constexpr Bytes least_routed{u64{1} << 20};

/// The fastest route for `size` bytes, by the rates measured in `machine`. It is the cheapest chain
/// (Dijkstra over the links' pipelined cost). For large copies it may be several disjoint chains
/// whose shares end together, within the total rates of the two ends.
/// \throws Error(bad_argument) if a place is not in `machine`, Error(no_route) if no chain joins
/// them
Route plan_route(Machine const& machine, Place const& source, Place const& target, Bytes size);

/// A route that was considered, and the verdict.
struct Candidate {
  Route route;
  std::string verdict;  ///< "chosen", or the reason against it: "1.7 times as long: ..."
};

/// The routes that plan_route chooses from, the chosen one first.
std::vector<Candidate> candidates(Machine const& machine, Place const& source, Place const& target,
                                  Bytes size);

/// The candidates as a table for people, with predicted GB/s, and measured GB/s for those used in
/// this process. Thread-safe.
std::string explain(Machine const& machine, Place const& source, Place const& target, Bytes size);

}  // namespace meshpost
