#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "meshpost/device/device.hpp"

namespace meshpost::cuda {

/// A new stream, non-blocking: it must not wait for a running kernel.
std::unique_ptr<Stream> make_stream(int device);
/// Around a stream of the user; null is CUDA's default stream, which is what torch uses unless told
/// otherwise.
std::unique_ptr<Stream> adopt_stream(int device, cudaStream_t adopted);

}  // namespace meshpost::cuda
