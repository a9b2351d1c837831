#pragma once
#include <string>

#include "meshpost/fabric/machine.hpp"

namespace meshpost::fabric {

/// The beginning of a fingerprint: the host, without its devices.
std::string host_part();

/// The text about one device, after "; ".
std::string device_part(PlaceInfo const& info);

}  // namespace meshpost::fabric
