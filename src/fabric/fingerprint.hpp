#pragma once
#include <string>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// What a fingerprint begins with: the host, without its devices.
std::string host_part();

/// What it says of one device, after "; ".
std::string device_part(PlaceInfo const& info);

}  // namespace meshpost::fabric
