#pragma once
#include <atomic>
#include <functional>
#include <vector>

#include "meshpost/world/offsets.hpp"
#include "meshpost/world/spaces.hpp"

namespace meshpost {

/// The symmetric heap: an offset means the same on every device of the world. Not thread-safe. If
/// processes share it, all of them make the same calls in the same order.
///
/// Counters lie apart from data. So do words that only have to be 0 when a run begins: ranks clear
/// them at a run's end (rma/run_words.hpp).
class Heap {
 public:
  /// Maps more memory, on the devices of all processes. It throws in all of them or in none. If it
  /// throws, the heap undoes the mappings.
  using Extend = std::function<void(Spaces& spaces, Bytes offset, Bytes size)>;
  explicit Heap(Layout const& layout, Extend extend = {});

  /// On a multiple of 256. Zeroed when it is handed out for the first time. Later it still holds
  /// its last contents. \throws Error(out_of_memory)
  u64 allocate(u64 size);
  void release(u64 offset, u64 size);
  enum class Swept { counters, words };
  /// Zeroed when it is handed out for the first time, at the end of each run, and by clear_swept().
  u64 allocate_swept(Swept what, u64 size);
  void release_swept(u64 offset, u64 size);

  u64 size() const { return mapped_; }  ///< bytes of each device; any thread may ask
  char* at(u32 device, u64 offset) const { return spaces_.at(device, offset); }
  Spaces const& spaces() const { return spaces_; }

  /// Ranges that hold such memory, if they were ever used: some dozens at most.
  struct Range {
    u64 offset, size;
    Swept what;
    bool operator==(Range const&) const = default;
  };
  std::vector<Range> swept_ranges() const;
  void clear_swept();  ///< on this process's devices

 private:
  struct Region {
    u64 offset, size, used;
    Swept what;
    Offsets free;
  };
  void grow(u64 size);

  Layout layout_;
  Extend extend_;
  Spaces spaces_;
  std::atomic<u64> mapped_ = 0;
  Offsets data_;
  std::vector<Region> swept_;
};

}  // namespace meshpost
