#pragma once
#include <memory>

#include "meshpost/device/device.hpp"

namespace meshpost::cpu {
std::unique_ptr<Stream> make_stream();
}  // namespace meshpost::cpu
