#include "rma/via/proxy/undelivered.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace meshpost::detail {

void Undelivered::add(u32 sequence, Range const& range, By by) {
  if (range.bytes == 0) return;
  entries_.push_back({sequence, range, by});
  if (entries_.size() > most) coarsen();
}

// Keeps one entry for each device and each way, known as long as its last one.
void Undelivered::coarsen() {
  std::map<std::pair<u32, By>, Entry> hulls;
  for (auto const& entry : entries_) {
    auto& hull = hulls.try_emplace({entry.range.device, entry.by}, entry).first->second;
    u64 const end =
        std::max(hull.range.offset + hull.range.bytes, entry.range.offset + entry.range.bytes);
    hull.range.offset = std::min(hull.range.offset, entry.range.offset);
    hull.range.bytes = end - hull.range.offset;
    hull.sequence = entry.sequence;
  }
  u32 const first = entries_.front().sequence;
  entries_.clear();
  for (auto const& [key, hull] : hulls) entries_.push_back(hull);
  std::ranges::sort(entries_, {}, [&](Entry const& entry) { return entry.sequence - first; });
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
