#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::cpu {

/// Host memory, aligned to 256 bytes, that the memory map knows as `device`'s. Freed memory stays
/// out of use for a while. So a pointer into it can be told from a pointer into later memory at the
/// same address.
Allocation allocate(Device& device, Bytes size, MemoryKind kind);

}  // namespace meshpost::cpu
