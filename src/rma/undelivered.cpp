#include "rma/undelivered.hpp"

#include <algorithm>

namespace meshpost::detail {

void Undelivered::add(u32 sequence, Range const& range, By by) {
  if (range.bytes != 0) entries_.push_back({sequence, range, by});
}

void Undelivered::delivered_before(u32 sequence) {
  while (!entries_.empty() && static_cast<i32>(entries_.front().sequence - sequence) < 0)
    entries_.pop_front();
}

Undelivered::By Undelivered::in(Range const& range) const {
  auto by = By::nobody;
  for (auto const& entry : entries_)
    if (entry.range.device == range.device && entry.range.offset < range.offset + range.bytes &&
        range.offset < entry.range.offset + entry.range.bytes)
      by = std::max(by, entry.by);
  return by;
}

}  // namespace meshpost::detail
