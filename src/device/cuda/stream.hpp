#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "meshpost/device/device.hpp"

namespace meshpost::cuda {

/// A stream of its own if `adopted` is null, non-blocking: it must not wait for a running kernel.
std::unique_ptr<Stream> make_stream(int device, cudaStream_t adopted);

}  // namespace meshpost::cuda
