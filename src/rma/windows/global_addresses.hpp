#pragma once
#include <map>
#include <optional>
#include <shared_mutex>

#include "meshpost/world/heap.hpp"
#include "meshpost/world/offsets.hpp"

namespace meshpost::detail {

/// Memory of a World as all its processes name it: a device, and an offset in that device's part of
/// the symmetric heap, or behind all heaps, in memory of users that a window lies over.
struct GlobalAddress {
  u32 device = 0;
  u64 offset = 0;
};

/// What places are in this process. Ranges of users have numbers, the same in all processes, 1 and
/// up: number n's begin near n * each. Devices name what they can't load and store by addresses at
/// which nothing is mapped: as if behind the World's ranges of addresses there were others, one for
/// each number. Nobody uses them but for this.
class GlobalAddresses {
 public:
  GlobalAddresses(Layout const& layout, Heap const& heap);

  static constexpr u64 each = u64{1} << 46;  // more than any device has
  static constexpr u64 most_skew = 256;      // that a range begins behind its number's beginning
  static bool is_users(u64 offset) { return offset >= each; }

  /// The place that an own device names by an address, in the heap or out of reach.
  GlobalAddress of(u32 own, void const* address) const;
  /// The same if so many bytes there are of the heap, and the device reaches them.
  std::optional<GlobalAddress> in_heap(u32 own, void const* address, u64 bytes) const;
  /// The other way.
  char* seen_by(u32 own, GlobalAddress global) const;
  /// Memory of an own device, of which that much is there; else null.
  char* memory(GlobalAddress global, u64 bytes) const;

  /// Numbers for a range of each rank of a device, the first of them; the same everywhere, if all
  /// processes make the same calls. \throws Error(out_of_memory) if there are no more
  u64 take_numbers();
  void give_numbers(u64 first);
  /// Under its number, an own device's memory: so many bytes are there, of users. Returns the
  /// offset of its place, which is aligned as the memory is.
  u64 add(u32 device, u64 number, void* begin, u64 bytes);

 private:
  struct Range {
    char* begin;
    u64 bytes;
  };
  static u64 skew(void const* begin) { return reinterpret_cast<u64>(begin) % most_skew; }

  Layout const& layout_;
  Heap const& heap_;
  Offsets numbers_;
  u64 end_ = ~u64{0};                // numbers before this one have addresses here
  mutable std::shared_mutex mutex_;  // other processes' questions come from another thread
  std::map<std::pair<u32, u64>, Range> ranges_;  // of own devices, by device and number
};

}  // namespace meshpost::detail
