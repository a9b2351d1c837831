#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "meshpost/device/memory_map.hpp"

namespace meshpost::copying {

/// The owner and kind of the memory that a pointer points into.
struct Location {
  MemoryKind kind = MemoryKind::pageable;
  Device* device = nullptr;  ///< null: plain host memory
  bool on_host = true;       ///< threads of the host read and write it in place

  /// True if a device's copy engine reaches it by itself, without the driver's own buffers.
  bool for_engines() const { return !on_host || (device && page_locked); }
  bool page_locked = false;
};

/// Finds the memory of [pointer, pointer + size). Memory that the library allocated or that was
/// registered is in the memory map. For memory that only a driver knows, the driver is asked once.
/// A kept answer is valid while the driver gives the allocation the same number, which it never
/// gives twice. Thread-safe.
/// \throws Error(bad_argument) for null or freed memory, for host pages that are not mapped, and if
/// the allocation ends earlier. `operation` and `role` ("source", "target") are for its text.
Location locate(void const* pointer, u64 size, std::string_view operation, std::string_view role);

}  // namespace meshpost::copying
