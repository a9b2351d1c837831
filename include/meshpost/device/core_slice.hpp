#pragma once
#include <vector>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// A time in which a rank of a CPU device had a core, in ns on the host's clock. From `ready` to
/// `begin` it waited for a core. Before `ready` it could not continue.
struct CoreSlice {
  u64 ready, begin, end;
};

/// The way in which the ranks of a CPU device shared the cores in one run.
struct CoreRecord {
  u32 cores = 0;  ///< for all CPU devices of the run
  /// For each rank, in order. A vector that is filled up to its capacity takes no more.
  std::vector<std::vector<CoreSlice>> ranks{};

  /// For another run. The capacity stays.
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
