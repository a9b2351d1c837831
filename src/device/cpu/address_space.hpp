#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cpu {

/// The CPU devices' symmetric range: a memory file a device, mapped side by side.
std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices);

/// Memory that the host could still give.
Bytes available_memory();
/// Memory that the host has.
Bytes total_memory();

}  // namespace meshpost::cpu
