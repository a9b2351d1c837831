#pragma once
#include <map>
#include <span>
#include <vector>

#include "meshpost/rma/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// The counters of this process's devices as a run left them.
class CounterSnapshot {
 public:
  explicit CounterSnapshot(WorldState& world);
  struct Count {
    u32 count = 0;
    u32 sender_and_one = 0;  ///< of the last notification; 0: there was none
  };
  Count of(WindowInfo const& window, u32 rank, u32 tag) const;
  /// The first `most` at this process's ranks; counts the rest.
  std::vector<Leftover> leftovers(u64 most, u64& left_out) const;

 private:
  // By tag; empty for ranks of other processes.
  std::span<u32 const> words_of(WindowInfo const& window, u32 rank,
                                WindowInfo::CounterArray array) const;
  bool has_any(WindowInfo const& window, u32 rank) const;

  WorldState& world_;
  std::vector<std::map<u64, std::vector<u32>>> words_;  // by device: offset of a range -> its words
};

}  // namespace meshpost::detail
