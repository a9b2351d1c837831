#pragma once
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// A while in which a rank of a CPU device had a core, in ns on the host's clock. Before `begin` it
/// waited for a core since `ready`; before that it could not go on.
struct CoreSlice {
  u64 ready, begin, end;
};

/// How the ranks of a CPU device shared the cores in one run.
struct CoreRecord {
  u32 cores = 0;  ///< that there were for all CPU devices of the run
  /// Of each rank, in order. One that is filled up to its capacity takes no more.
  std::vector<std::vector<CoreSlice>> ranks{};

  static CoreRecord with_room(u32 ranks, u32 slices_each) {
    CoreRecord record{0, std::vector<std::vector<CoreSlice>>(ranks)};
    for (auto& slices : record.ranks) slices.reserve(slices_each);
    return record;
  }
  /// For another run; the room stays.
  void clear() {
    cores = 0;
    for (auto& slices : ranks) slices.clear();
  }
  bool complete() const {
    for (auto const& slices : ranks)
      if (slices.size() == slices.capacity()) return false;
    return !ranks.empty();
  }
};

}  // namespace meshpost
