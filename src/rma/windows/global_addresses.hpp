#pragma once
#include <map>
#include <optional>
#include <shared_mutex>

#include "meshpost/world/heap.hpp"
#include "meshpost/world/offsets.hpp"

namespace meshpost::detail {

/// Memory of a World, in the form that all its processes share: a device, and an offset. The offset
/// is in that device's part of the symmetric heap. Behind all heaps, it is in memory of users that
/// a window lies over.
struct GlobalAddress {
  u32 device = 0;
  u64 offset = 0;
};

/// The meaning of places in this process. Ranges of users have numbers, the same in all processes,
/// 1 and up: number n's begin near n * each. Devices name memory that they can't load and store by
/// addresses at which nothing is mapped. It is as if behind the World's ranges of addresses there
/// were others, one for each number. These addresses have no other use.
class GlobalAddresses {
 public:
  GlobalAddresses(Layout const& layout, Heap const& heap);

  static constexpr u64 each = u64{1} << 46;  // more than any device has
  static constexpr u64 most_skew = 256;      // that a range begins behind its number's beginning
  static bool is_users(u64 offset) { return offset >= each; }

  /// The place of an address that an own device uses, in the heap or out of reach.
  GlobalAddress of(u32 own, void const* address) const;
  /// The same if so many bytes from there are in the heap, and the device reaches them.
  std::optional<GlobalAddress> in_heap(u32 own, void const* address, u64 bytes) const;
  /// The reverse: the address that an own device uses.
  char* seen_by(u32 own, GlobalAddress global) const;
  /// Memory of an own device, if it has that many bytes there; else null.
  char* memory(GlobalAddress global, u64 bytes) const;

  /// Takes numbers for a range of each rank of a device, and returns the first. They are the same
  /// everywhere if all processes make the same calls. \throws Error(out_of_memory) if there are no
  /// more
  u64 take_numbers();
  void give_numbers(u64 first);
  /// Adds an own device's memory of users under its number, with so many bytes. Returns the offset
  /// of its place, which is aligned as the memory is.
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
  mutable std::shared_mutex mutex_;  // another thread answers other processes' questions
  std::map<std::pair<u32, u64>, Range> ranges_;  // of own devices, by device and number
};

}  // namespace meshpost::detail
