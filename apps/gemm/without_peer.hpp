#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::gemm {

/// Enqueues the copy of `rows` from a GPU to another, whose stream it is, and doesn't open either's
/// memory to the other for that, as copies of the library do: where nothing else has, the driver
/// takes it through the host. \throws Error(device_failed)
void copy_without_peer(Stream& stream, Device const& to, Device const& from,
                       PitchedCopy const& rows);

}  // namespace meshpost::gemm
