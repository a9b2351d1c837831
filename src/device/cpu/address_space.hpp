#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cpu {

/// The CPU devices' symmetric range: one memory file for each device, mapped side by side.
std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices);

/// Memory that the host can still give.
Bytes available_memory();
/// Of that, as much as the limit of this process's container leaves.
Bytes free_memory();
/// Memory that the host has.
Bytes total_memory();

}  // namespace meshpost::cpu
