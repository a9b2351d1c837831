#pragma once
#include "rma/windows/global_addresses.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// Where a World's memory is, and whose: what its parts know in common. Each has it as its base.
struct WorldMemory {
  // NOLINTBEGIN(readability-identifier-naming): members of the classes that derive from this
  ProcessGroup const& group_;
  Layout const& layout_;
  Heap& heap_;
  GlobalAddresses& addresses_;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace meshpost::detail
