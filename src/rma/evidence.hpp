#pragma once
#include <vector>

#include "rma/counter_snapshot.hpp"
#include "rma/watch.hpp"

namespace meshpost::detail {

/// What is known of a run that did not end by itself: its ranks' reports, with their states when it
/// was ended, and their counters. A process gathers its own; those of others are added.
class Evidence {
 public:
  /// `ending.states` and `grids` are of own ranks.
  Evidence(WorldState& world, std::vector<Grid> const& grids, Ending const& ending);

  /// By world rank; state absent: nothing is known.
  std::vector<RankReport> const& reports() const { return reports_; }
  CounterSnapshot const& counters() const { return counters_; }

  std::string pack() const;  ///< of own ranks
  void add(std::string_view packed);

 private:
  Layout const& layout_;
  std::vector<RankReport> reports_;
  CounterSnapshot counters_;
};

}  // namespace meshpost::detail
