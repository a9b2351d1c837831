#pragma once
#include <atomic>

#include "meshpost/device/report.hpp"
#include "rma/runs/supervising/watch.hpp"

// How the host reads what running ranks publish.

namespace meshpost::detail {

inline u32 read(u32& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
inline RankState state_of(RankReport& report) { return static_cast<RankState>(read(report.state)); }

template <class Visit>
void each_report(RunningGrids const& running, Visit&& visit) {
  for (auto const& grid : running.grids)
    for (u32 r = 0; r < grid.ranks; ++r) visit(grid.reports[r], grid.first_rank + r);
}

}  // namespace meshpost::detail
