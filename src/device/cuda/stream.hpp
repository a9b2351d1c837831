#pragma once
#include <cuda_runtime_api.h>

#include <memory>

#include "meshpost/device/device.hpp"

namespace meshpost::cuda {

/// A new stream, non-blocking: it must not wait for a running kernel.
std::unique_ptr<Stream> make_stream(int device);
/// The same, of the highest priority.
std::unique_ptr<Stream> make_urgent_stream(int device);
/// Wraps a stream of the user. Null is CUDA's default stream, which torch uses by default.
std::unique_ptr<Stream> adopt_stream(int device, cudaStream_t adopted);

}  // namespace meshpost::cuda
