#pragma once
#include <string>
#include <vector>

#include "meshpost/fabric/machine.hpp"

namespace meshpost {

/// A way of links, one after the other, that a share of the bytes takes in chunks: while one chunk
/// is on a link, the next is on the link before it.
struct Chain {
  std::vector<u32> links;  ///< positions in Machine::links
  Bytes share{};           ///< bytes that go this way
  Bytes chunk{};           ///< at a time; the whole share over a single link
};

/// How one copy travels. A plain value: print and compare it without a device.
struct Route {
  std::vector<Chain> chains;  ///< at once, disjoint but for the two ends
  double predicted = 0;       ///< seconds
};

/// The route that takes `size` bytes there soonest by the rates measured in `machine`: the cheapest
/// chain (Dijkstra over the links' pipelined cost) or, for large copies, several disjoint ones
/// whose shares end together, within what the two ends can send and take in all.
/// \throws Error(bad_argument) if a place is not in `machine`, Error(no_route) if no chain joins
/// them
Route plan_route(Machine const& machine, Place const& source, Place const& target, Bytes size);

/// A route that was thought of, and what became of it.
struct Candidate {
  Route route;
  std::string verdict;  ///< "chosen", or why not: "1.7 times as long: ..."
};

/// What plan_route chooses among, the chosen one first.
std::vector<Candidate> candidates(Machine const& machine, Place const& source, Place const& target,
                                  Bytes size);

/// The candidates as a table for people, with predicted GB/s and, of those that were used in this
/// process, measured GB/s. Thread-safe.
std::string explain(Machine const& machine, Place const& source, Place const& target, Bytes size);

}  // namespace meshpost
