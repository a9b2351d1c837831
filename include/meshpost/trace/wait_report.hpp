#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshpost/device/report.hpp"

namespace meshpost {

/// What is known of a rank when a run is ended: its report, and who could wake it.
struct RankView {
  u32 rank = 0;
  RankState state = RankState::absent;
  Note note;
  u64 observed = 0;  ///< the awaited word: notifications there, or the word's bits
  Condition condition;
  std::vector<u32> could_wake;  ///< ranks that are expected to; empty: anybody
  bool sent_before = false;     ///< could_wake holds the rank that last raised this counter
};

/// What stands in a report for a number.
using NameOf = std::function<std::string(u32 number)>;
struct ReportNames {
  NameOf window, communicator;
  NameOf absent;  ///< where a rank is whose state is not known: "in process 2, which is gone"
};

/// Every rank that waits and for what, who has ended or failed, and a cycle if they wait for each
/// other: "rank 3 waits for tag 7 of window 'inbox', 0 of 1 arrived; rank 2, which sent it before,
/// has ended". Pure. `most` ranks are listed one by one, the others counted.
std::string wait_report(std::vector<RankView> const& ranks, ReportNames const& names,
                        std::size_t most = 16);

/// Ranks that wait for each other in a circle, in order; empty if there is none. A rank that
/// anybody could wake waits for any rank that waits, unless the state of some is not known.
std::vector<u32> find_cycle(std::vector<RankView> const& ranks);

}  // namespace meshpost
