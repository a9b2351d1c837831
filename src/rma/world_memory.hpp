#pragma once
#include "rma/windows/places.hpp"
#include "world/peers.hpp"

namespace meshpost::detail {

/// The memory of a World and its owners. The World's parts share this knowledge; each has it as its
/// base.
struct WorldMemory {
  // NOLINTBEGIN(readability-identifier-naming): members of the classes that derive from this
  Peers const& peers_;
  Layout const& layout_;
  Heap& heap_;
  Places& places_;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace meshpost::detail
