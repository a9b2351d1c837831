#pragma once
#include <map>
#include <optional>

#include "meshpost/base/types.hpp"

namespace meshpost {

/// Hands out parts of ranges of offsets, first fit, and joins parts that come back. It touches no
/// memory.
class Offsets {
 public:
  /// Adds a range to hand out.
  void add(u64 offset, u64 size);
  /// A power of two.
  struct Alignment {
    u64 value;
  };
  /// The offset of `size` free bytes on a multiple of `alignment`, or nothing.
  std::optional<u64> take(u64 size, Alignment alignment = {1});
  /// Gives back what take() returned, with the same size.
  void give(u64 offset, u64 size) { add(offset, size); }
  u64 free_bytes() const;

 private:
  std::map<u64, u64> free_;  // offset -> size; neighbours are joined
};

}  // namespace meshpost
