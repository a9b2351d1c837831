#include "meshpost/world/heap.hpp"

#include <algorithm>
#include <string>

namespace meshpost {
namespace {
constexpr u64 smallest_growth = u64{2} << 20;
constexpr u64 smallest_region = u64{1} << 20;
constexpr u64 alignment = 256;
constexpr u64 swept_alignment = 128;  // no two windows' counters share a cache line

u64 round_up(u64 value, u64 unit) { return (value + unit - 1) / unit * unit; }
}  // namespace

Heap::Heap(Layout const& layout, Extend extend)
    : layout_(layout), extend_(std::move(extend)), spaces_(layout) {
  grow(smallest_growth);
  data_.take(alignment);  // offset 0 stays free to mean "none"
}

void Heap::grow(u64 size) {
  u64 const left = spaces_.stride() - mapped_;
  // The same in all processes, even if their devices differ in what they can map.
  u64 const unit = std::max(smallest_growth, spaces_.granularity());
  u64 const more = size > left ? size : round_up(std::max<u64>(size, 1), unit);
  if (more > left)
    throw Error(Kind::out_of_memory, "symmetric heap",
                std::to_string(size) + " more bytes on each device were asked for; a device has " +
                    std::to_string(spaces_.stride()) + " at most, of which " +
                    std::to_string(mapped_) + " are in the heap already",
                "use smaller windows");
  try {
    if (extend_) extend_(spaces_, Bytes{mapped_}, Bytes{more});
    else spaces_.extend(Bytes{mapped_}, Bytes{more});
    data_.add(mapped_, more);
  } catch (...) {
    spaces_.shrink(Bytes{mapped_}, Bytes{more});  // some devices may have grown: shrinks them again
    throw;
  }
  mapped_ += more;
}

u64 Heap::allocate(u64 size) {
  if (size > ~u64{0} - alignment) grow(size);  // throws
  u64 const wanted = round_up(std::max<u64>(size, 1), alignment);
  if (auto const found = data_.take(wanted, {alignment})) return *found;
  grow(wanted + alignment);
  return *data_.take(wanted, {alignment});
}

void Heap::release(u64 offset, u64 size) {
  data_.give(offset, round_up(std::max<u64>(size, 1), alignment));
}

u64 Heap::allocate_swept(Swept what, u64 size) {
  u64 const wanted = round_up(std::max<u64>(size, 1), swept_alignment);
  auto const take = [&](Region& region) {
    auto const found = region.free.take(wanted, {swept_alignment});
    if (found) region.used = std::max(region.used, *found + wanted - region.offset);
    return found;
  };
  u64 so_far = 0;
  for (auto& region : swept_) {
    if (region.what != what) continue;
    if (auto const found = take(region)) return *found;
    so_far += region.size;
  }
  // Each is as large as all before it together. So there are few regions, even with many windows.
  u64 const region_size = std::max({smallest_region, wanted, so_far});
  swept_.push_back(
      {.offset = allocate(region_size), .size = region_size, .used = 0, .what = what, .free = {}});
  swept_.back().free.add(swept_.back().offset, region_size);
  for (u32 d = 0; d < layout_.own_count(); ++d)
    layout_.devices[d]->fill(at(layout_.first_device + d, swept_.back().offset), 0,
                             Bytes{region_size});
  return *take(swept_.back());
}

void Heap::release_swept(u64 offset, u64 size) {
  for (auto& region : swept_)
    if (offset >= region.offset && offset < region.offset + region.size)
      region.free.give(offset, round_up(std::max<u64>(size, 1), swept_alignment));
}

std::vector<Heap::Range> Heap::swept_ranges() const {
  std::vector<Range> ranges;
  for (auto const& region : swept_)
    if (region.used > 0)
      ranges.push_back({.offset = region.offset, .size = region.used, .what = region.what});
  return ranges;
}

void Heap::clear_swept() {
  for (auto const& range : swept_ranges())
    for (u32 d = 0; d < layout_.own_count(); ++d)
      layout_.devices[d]->fill(at(layout_.first_device + d, range.offset), 0, Bytes{range.size});
}

}  // namespace meshpost
