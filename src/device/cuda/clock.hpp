#pragma once
#include <cuda_runtime_api.h>

#include "meshpost/base/fn.hpp"

namespace meshpost::cuda {

/// Nanoseconds to add to the global timer of `device` to get the host's steady clock, within a few
/// microseconds. Runs a short kernel.
i64 clock_offset(int device);

/// Stores the global timer in a word of pinned memory, in the order of `stream` on the current
/// device.
cudaError_t store_clock(cudaStream_t stream, u64* word);

}  // namespace meshpost::cuda
