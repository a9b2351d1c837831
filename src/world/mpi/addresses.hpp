#pragma once
#include <string>
#include <vector>

namespace meshpost {

/// This host's IPv4 addresses on networks that are up, without loopback.
std::vector<std::string> own_addresses();

}  // namespace meshpost
