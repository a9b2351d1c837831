#pragma once
#include <map>
#include <optional>
#include <shared_mutex>

#include "meshpost/device/device.hpp"

namespace meshpost {

/// A range of addresses and the device that its memory belongs to.
struct MemoryRange {
  char const* begin = nullptr;
  u64 size = 0;
  MemoryKind kind = MemoryKind::device;
  Device* device = nullptr;  ///< allocated it; a device lives as long as the process
  bool live = true;          ///< false: it was freed
  u64 id = 0;                ///< the driver's number of this allocation, 0 if the library made it

  bool contains(void const* pointer) const {
    auto const* const at = static_cast<char const*>(pointer);
    return at >= begin && at < begin + size;
  }
};

/// Memory that the library has allocated or that was registered with it, by address. Thread-safe.
class MemoryMap {
 public:
  /// Says if a range may be merged with the one that ends where it begins.
  enum class Neighbours { separate, join };

  /// Adds a live range. Ranges that overlap it were freed unnoticed, and are forgotten.
  void add(MemoryRange const& range, Neighbours neighbours = Neighbours::separate);
  /// Notes that the range that begins here is about to be freed. It stays known as freed until its
  /// addresses are used again. Call it before the memory is freed, or it may hit the next range
  /// there.
  void retire(void const* begin);
  /// Forgets what is known of these addresses; a range that reaches beyond them is cut.
  void forget(void const* begin, u64 size);
  std::optional<MemoryRange> find(void const* pointer) const;

 private:
  void drop(char const* begin, u64 size);

  mutable std::shared_mutex mutex_;
  std::map<char const*, MemoryRange> ranges_;  // by begin; they don't overlap
};

/// The process's map.
MemoryMap& memory_map();

}  // namespace meshpost
