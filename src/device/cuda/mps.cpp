#include "device/cuda/mps.hpp"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <filesystem>

namespace meshpost::cuda {

bool mps_serves(int device) {
  int on = 0;
  if (cudaDeviceGetAttribute(&on, cudaDevAttrMpsEnabled, device) == cudaSuccess) return on != 0;
  cudaGetLastError();  // an older driver does not know the question: look for MPS's control pipe
  char const* const chosen = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  std::filesystem::path const folder = chosen && *chosen ? chosen : "/tmp/nvidia-mps";
  std::error_code none;
  return std::filesystem::is_fifo(folder / "control", none);
}

}  // namespace meshpost::cuda
