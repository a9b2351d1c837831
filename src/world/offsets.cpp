#include "meshpost/world/offsets.hpp"

namespace meshpost {

void Offsets::add(u64 offset, u64 size) {
  if (size == 0) return;
  auto const after = free_.lower_bound(offset);
  if (after != free_.end() && offset + size == after->first) {
    size += after->second;
    free_.erase(after);
  }
  auto before = free_.lower_bound(offset);
  if (before != free_.begin()) {
    --before;
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  free_[offset] = size;
}

std::optional<u64> Offsets::take(u64 size, Alignment alignment) {
  for (auto const& [offset, available] : free_) {
    u64 const aligned = (offset + alignment.value - 1) & ~(alignment.value - 1);
    u64 const skipped = aligned - offset;
    if (skipped > available || size > available - skipped) continue;
    u64 const end = offset + available, start = offset;
    free_.erase(start);
    add(start, skipped);
    add(aligned + size, end - aligned - size);
    return aligned;
  }
  return std::nullopt;
}

u64 Offsets::free_bytes() const {
  u64 sum = 0;
  for (auto const& [offset, size] : free_) sum += size;
  return sum;
}

}  // namespace meshpost
