#pragma once
#include "meshpost/base/fn.hpp"

namespace meshpost {

/// Which windows a World has freed, as its ranks look it up. A window's number is never given
/// again, so the handle of a freed window is told from that of the one that has its memory now.
///
/// A kernel keeps `first` and `span` in registers: one comparison shows that most windows were not
/// freed. Only what falls between is looked up in memory, which costs a GPU some loads.
struct FreedWindows {
  struct Range {
    u32 begin, end;  ///< numbers; `end` is not in it
  };
  u32 first = 0, span = 0;  ///< all that were freed are in [first, first + span), which may wrap
  u32 count = 0;
  Range const* ranges = nullptr;  ///< `count` of them, ascending, in memory of the device

  MESHPOST_FN bool may_contain(u32 number) const { return number - first < span; }
  MESHPOST_COLD bool contains(u32 number) const {
    u32 begin = 0, end = count;
    while (begin < end) {
      u32 const middle = begin + (end - begin) / 2;
      if (number < ranges[middle].begin) end = middle;
      else if (number >= ranges[middle].end) begin = middle + 1;
      else return true;
    }
    return false;
  }
};

}  // namespace meshpost
