#include "meshpost/device/memory_map.hpp"

#include <mutex>

namespace meshpost {

void MemoryMap::drop(char const* begin, u64 size) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.contains(begin)) --at;
  while (at != ranges_.end() && at->first < begin + size) at = ranges_.erase(at);
}

void MemoryMap::add(MemoryRange const& range, Neighbours neighbours) {
  if (range.size == 0) return;
  std::unique_lock const lock(mutex_);
  drop(range.begin, range.size);
  if (neighbours == Neighbours::join) {
    auto const next = ranges_.lower_bound(range.begin);
    if (next != ranges_.begin()) {
      auto& before = std::prev(next)->second;
      if (before.begin + before.size == range.begin && before.device == range.device &&
          before.kind == range.kind && before.live) {
        before.size += range.size;
        return;
      }
    }
  }
  ranges_[range.begin] = range;
}

void MemoryMap::retire(void const* begin) {
  std::unique_lock const lock(mutex_);
  auto const found = ranges_.find(static_cast<char const*>(begin));
  if (found != ranges_.end()) found->second.live = false;
}

void MemoryMap::forget(void const* begin, u64 size) {
  auto const* const from = static_cast<char const*>(begin);
  auto const* const to = from + size;
  std::unique_lock const lock(mutex_);
  auto const first = ranges_.upper_bound(from);
  std::optional<MemoryRange> before, after;
  if (first != ranges_.begin() && std::prev(first)->first < from) before = std::prev(first)->second;
  auto const last = ranges_.lower_bound(to);
  if (last != ranges_.begin()) after = std::prev(last)->second;
  drop(from, size);
  if (before && before->contains(from)) {
    auto left = *before;
    left.size = static_cast<u64>(from - left.begin);
    ranges_[left.begin] = left;
  }
  if (after && after->begin + after->size > to) {
    auto left = *after;
    left.size -= static_cast<u64>(to - left.begin);
    left.begin = to;
    ranges_[to] = left;
  }
}

std::optional<MemoryRange> MemoryMap::find(void const* pointer) const {
  std::shared_lock const lock(mutex_);
  auto const next = ranges_.upper_bound(static_cast<char const*>(pointer));
  if (next == ranges_.begin()) return std::nullopt;
  auto const& range = std::prev(next)->second;
  if (!range.contains(pointer)) return std::nullopt;
  return range;
}

MemoryMap& memory_map() {
  static auto* const one = new MemoryMap;  // memory may be freed after main
  return *one;
}

}  // namespace meshpost
