#pragma once

namespace meshpost::cuda {

/// True if several processes' kernels run on the GPU at the same time: under NVIDIA's Multi-Process
/// Service.
bool mps_serves(int device);

}  // namespace meshpost::cuda
