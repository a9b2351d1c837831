#pragma once
#include <vector>

#include "rma/runs/diagnosing/counter_snapshot.hpp"
#include "rma/runs/supervising/watch.hpp"

namespace meshpost::detail {

/// The facts about a run that did not end by itself. These are its ranks' reports, with their
/// states when it was ended, the counters they waited for, and the messages sent between nodes. A
/// process gathers its own facts, and adds those of others. Some 100 bytes a rank travel, however
/// many tags there are.
class FailedRunState {
 public:
  /// `ending.states` and `grids` are of own ranks.
  FailedRunState(WorldState& world, std::vector<LaunchGrid> const& grids, Ending const& ending);

  /// By world rank; state absent: nothing is known.
  std::vector<RankReport> const& reports() const { return reports_; }
  CounterSnapshot const& counters() const { return counters_; }  ///< of own ranks
  /// The counter that the rank waited for or tested, if its report says so.
  CounterSnapshot::Count awaited(u32 rank) const { return awaited_[rank]; }

  /// Messages from one process to another: sent and arrived. The numbers are equal if no process is
  /// out of reach.
  struct MessageCounts {
    u64 sent = 0, arrived = 0;
  };
  MessageCounts messages(u32 from, u32 to) const { return messages_[from * processes_ + to]; }

  std::string pack() const;  ///< of own ranks
  void add(std::string_view packed);

 private:
  void note(u32 process, u32 other, Proxy::Traffic const& traffic);

  Layout const& layout_;
  std::vector<RankReport> reports_;
  CounterSnapshot counters_;
  std::vector<CounterSnapshot::Count> awaited_;  // by world rank
  u32 const process_, processes_;
  std::vector<MessageCounts> messages_;  // by sender, then receiver
};

}  // namespace meshpost::detail
