#pragma once
#include <map>
#include <span>
#include <vector>

#include "meshpost/rma/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// The counters of this process's devices at the end of a run.
class CounterSnapshot {
 public:
  explicit CounterSnapshot(WorldState& world);
  struct Count {
    u32 count = 0;
    u32 raised_by = 0;  ///< WindowInfo::raiser(rank) of the last notification; 0: there was none
  };
  Count of(WindowInfo const& window, u32 rank, u32 tag) const;

 private:
  // By tag; empty for ranks of other processes.
  std::span<u32 const> words_of(WindowInfo const& window, u32 rank,
                                WindowInfo::CounterArray array) const;

  WorldState& world_;
  std::vector<std::map<u64, std::vector<u32>>> words_;  // by device: offset of a range -> its words
};

}  // namespace meshpost::detail
