#pragma once
#include <optional>

#include "meshpost/device/memory_map.hpp"

namespace meshpost::cuda {

struct Found {
  MemoryRange range;  ///< without its device
  u32 device = 0;
};
/// The driver's knowledge of the memory there. Nothing for memory that is not CUDA's.
std::optional<Found> identify(void const* pointer);

/// The driver's number of the allocation there, 0 if there is none.
u64 memory_id(void const* pointer);

}  // namespace meshpost::cuda
