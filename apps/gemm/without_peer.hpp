#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::gemm {

/// Enqueues the copy of `rows` from one GPU to another, in a stream of the target. It does not
/// enable peer access, as copies of the library do. If nothing else has enabled it, the driver
/// copies through the host. \throws Error(device_failed)
void copy_without_peer(Stream& stream, Device const& to, Device const& from,
                       PitchedCopy const& rows);

}  // namespace meshpost::gemm
