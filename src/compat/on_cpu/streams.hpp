#pragma once
#include "meshpost/device/device.hpp"

namespace meshpost::compat {

/// The stream behind a cudaStream_t that on_cpu/cuda_runtime.h has made; the process's own one for
/// null. Null: it was not made there, or was destroyed.
Stream* stream_on_cpu(void* stream);

}  // namespace meshpost::compat
