#pragma once
#include "rma/windows/global_addresses.hpp"
#include "world/process_group.hpp"

namespace meshpost::detail {

/// The memory of a World and its owners. The World's parts share this knowledge; each has it as its
/// base.
struct WorldMemory {
  // NOLINTBEGIN(readability-identifier-naming): members of the classes that derive from this
  ProcessGroup const& group_;
  Layout const& layout_;
  Heap& heap_;
  GlobalAddresses& addresses_;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace meshpost::detail
