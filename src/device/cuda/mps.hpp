#pragma once

namespace meshpost::cuda {

/// Whether processes that use the GPU run kernels at the same time: under NVIDIA's Multi-Process
/// Service.
bool mps_serves(int device);

}  // namespace meshpost::cuda
