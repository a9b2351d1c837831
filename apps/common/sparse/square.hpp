#pragma once
#include <meshpost/meshpost.hpp>

#include "csr.hpp"

namespace meshpost::apps::sparse {

/// Devices in a square, numbered down the columns, as in the thesis: device (i, j) has the block in
/// row i and column j of blocks.
struct Square {
  u32 side = 1;

  MESHPOST_FN u32 device(u32 row, u32 column) const { return column * side + row; }
  MESHPOST_FN u32 row_of(u32 device) const { return device % side; }
  MESHPOST_FN u32 column_of(u32 device) const { return device / side; }
  MESHPOST_FN u32 devices() const { return side * side; }

  /// Row or column `block` of blocks, of `n` rows or columns.
  MESHPOST_FN Range range(u32 block, u32 n) const {
    return {static_cast<u32>(u64{n} * block / side), static_cast<u32>(u64{n} * (block + 1) / side)};
  }

  // Binomial trees over the `side` devices of a row or column, with root 0. The levels have
  // distance 1, 2, 4, ... A broadcast begins at distance 1: those below `distance` send to those
  // above. A reduction goes the same way: at distance 1 each odd one sends to its predecessor.

  /// Levels of a tree.
  MESHPOST_FN u32 levels() const {
    u32 count = 0;
    while ((1u << count) < side) ++count;
    return count;
  }
  /// Broadcast: the first level at which `place` has the data and may send.
  MESHPOST_FN static u32 first_level(u32 place) {
    u32 level = 0;
    while ((1u << level) <= place) ++level;
    return level;
  }
  /// Broadcast: the one that `place` > 0 receives from.
  MESHPOST_FN static u32 parent(u32 place) { return place - (1u << (first_level(place) - 1)); }
  /// Broadcast: `place` sends at this level, to place + 2^level.
  MESHPOST_FN bool sends(u32 place, u32 level) const {
    return place < (1u << level) && place + (1u << level) < side;
  }
  /// Reduction: `place` receives at this level, from place + 2^level.
  MESHPOST_FN bool gathers(u32 place, u32 level) const {
    return place % (2u << level) == 0 && place + (1u << level) < side;
  }
  /// Reduction: the level at which `place` > 0 sends its sum, to place - 2^level.
  MESHPOST_FN static u32 last_level(u32 place) {
    u32 level = 0;
    while (place % (2u << level) == 0) ++level;
    return level;
  }
};

/// The square of all devices. \throws Error(bad_argument) if their number is no square
Square square_of(World const& world, std::string const& spec);

}  // namespace meshpost::apps::sparse
