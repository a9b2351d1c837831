#pragma once
#include "meshpost/device/backend.hpp"

namespace meshpost::detail {

/// A kernel without members that unpacks what nobody has waited for in a run that has ended
/// (rma/lanes.hpp), a warp for each rank.
KernelImage drain_image();

}  // namespace meshpost::detail
