#pragma once
#include "rma/windows/places.hpp"
#include "world/peers.hpp"

namespace meshpost::detail {

/// Where a World's memory is, and whose: what its parts know in common. Each has it as its base.
struct WorldMemory {
  // NOLINTBEGIN(readability-identifier-naming): members of the classes that derive from this
  Peers const& peers_;
  Layout const& layout_;
  Heap& heap_;
  Places& places_;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace meshpost::detail
