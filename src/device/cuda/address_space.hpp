#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::cuda {

/// The GPUs' symmetric range: physical memory of each, mapped side by side and open to all of them.
std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices);

}  // namespace meshpost::cuda
