#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/rma/run.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// The counters of a world as a run left them: those of this process's devices, and of others as
/// far as they were added.
class CounterSnapshot {
 public:
  explicit CounterSnapshot(WorldState& world);
  struct Count {
    u32 count = 0;
    u32 sender_and_one = 0;  ///< of the last notification; 0: there was none
  };
  Count of(WindowInfo const& window, u32 rank, u32 tag) const;
  std::vector<Leftover> leftovers() const;  ///< at this process's ranks

  std::string pack() const;  ///< of this process's devices
  void add(std::string_view packed);

 private:
  // By tag; empty if they are not known here.
  std::span<u32 const> words_of(WindowInfo const& window, u32 rank,
                                WindowInfo::CounterArray array) const;
  bool has_any(WindowInfo const& window, u32 rank) const;

  WorldState& world_;
  std::vector<std::map<u64, std::vector<u32>>> words_;  // by device: offset of a range -> its words
};

}  // namespace meshpost::detail
