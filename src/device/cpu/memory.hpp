#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::cpu {

/// Host memory, aligned to 256 bytes, that the memory map knows as `device`'s. What is freed stays
/// out of use for a while, so that a pointer into it can be told from one into what came after it.
Allocation allocate(Device& device, Bytes size, MemoryKind kind);

}  // namespace meshpost::cpu
