#pragma once
#include <functional>
#include <string>
#include <vector>

#include "meshpost/device/report.hpp"

namespace meshpost {

/// State of a rank when a run is ended: its report, and the ranks that could wake it.
struct RankView {
  u32 rank = 0;
  RankState state = RankState::absent;
  Note note;
  u64 observed = 0;  ///< the awaited word: notifications that arrived, or the word's bits
  Condition condition;
  std::vector<u32> could_wake;  ///< ranks that are expected to wake it; empty: any rank may
  bool sent_before = false;     ///< could_wake holds the rank that last raised this counter
};

/// The text of a report for a number.
using NameOf = std::function<std::string(u32 number)>;
struct ReportNames {
  NameOf window, communicator;
  NameOf absent;  ///< place of a rank whose state is not known: "in process 2, which is gone"
};

/// Lists every waiting rank and its wait, the ranks that have ended or failed, and a cycle if ranks
/// wait for each other. For example: "rank 3 waits for tag 7 of window 'inbox', 0 of 1 arrived;
/// rank 2, which sent it before, has ended". Has no side effects. `most` ranks are listed one by
/// one, the others counted.
std::string wait_report(std::vector<RankView> const& ranks, ReportNames const& names,
                        std::size_t most = 16);

/// Ranks that wait for each other in a circle, in order; empty if there is none. Only ranks whose
/// senders are known wait for somebody here.
std::vector<u32> find_cycle(std::vector<RankView> const& ranks);

}  // namespace meshpost
