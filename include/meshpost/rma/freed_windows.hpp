#pragma once
#include "meshpost/base/fn.hpp"

namespace meshpost {

/// The windows that a World has freed, as its ranks look them up. A window's number is never given
/// again. So the handle of a freed window differs from that of the window that now has its memory.
///
/// A kernel keeps `first` and `span` in registers: one comparison shows that most windows were not
/// freed. Only a number in between is looked up in memory, which costs a GPU some loads.
struct FreedWindows {
  struct Range {
    u32 begin, end;  ///< numbers; without `end`
  };
  u32 first = 0, span = 0;  ///< all freed ones are in [first, first + span), which may wrap
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
