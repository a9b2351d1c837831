#pragma once
#include <atomic>
#include <functional>
#include <vector>

#include "meshpost/world/offsets.hpp"
#include "meshpost/world/spaces.hpp"

namespace meshpost {

/// The symmetric heap: an offset means the same on every device of the world. Not thread-safe.
/// Where processes share it, all of them make the same calls in the same order.
///
/// Counters lie apart from data, so that a run can clear and check them in one sweep.
class Heap {
 public:
  /// Maps more, on the devices of all processes. Throws in all of them or in none; the heap then
  /// undoes what was mapped.
  using Extend = std::function<void(Spaces& spaces, Bytes offset, Bytes size)>;
  explicit Heap(Layout const& layout, Extend extend = {});

  /// Zeroed when first handed out, whatever was there last otherwise. \throws Error(out_of_memory)
  u64 allocate(u64 size, u64 alignment = 256);
  void release(u64 offset, u64 size);
  /// Zeroed now and by clear_counters().
  u64 allocate_counters(u64 size);
  void release_counters(u64 offset, u64 size);

  u64 size() const { return mapped_; }  ///< bytes of each device; any thread may ask
  char* at(u32 device, u64 offset) const { return spaces_.at(device, offset); }
  Spaces const& spaces() const { return spaces_; }

  /// Ranges that hold counters, as far as they were ever used.
  struct Range {
    u64 offset, size;
  };
  std::vector<Range> counter_ranges() const;
  void clear_counters();  ///< on this process's devices

 private:
  struct Region {
    u64 offset, size, used;
    Offsets free;
  };
  void grow(u64 size);

  Layout layout_;
  Extend extend_;
  Spaces spaces_;
  std::atomic<u64> mapped_ = 0;
  Offsets data_;
  std::vector<Region> counters_;
};

}  // namespace meshpost
