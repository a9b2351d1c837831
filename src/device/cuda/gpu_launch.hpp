#pragma once
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "device/cuda/launch_resources.hpp"
#include "device/logical.hpp"

namespace meshpost::cuda {

/// The part of a launch that one GPU runs in one launch: one device, or the GPU's logical devices.
class GpuLaunch {
 public:
  GpuLaunch(LaunchSpec const& spec, SharedGrids grids);
  int device() const { return static_cast<int>(grids_.device->index()); }
  std::string name() const;

  /// Loads the kernel on the device (CUDA loads lazily, which could block behind a running kernel)
  /// and makes sure that all ranks fit at once. A kernel stays loaded, so once is enough.
  void fit(CudaLaunchResources& resources) const;
  cudaError_t start(cudaStream_t stream) const;
  /// Adds the launch behind `node`, and sets `node` to it. Null: it is the first.
  cudaError_t add_to(cudaGraph_t graph, cudaGraphNode_t& node) const;

 private:
  // Makes the arguments of a launch; they live while `use` runs.
  template <class Use>
  cudaError_t with_arguments(Use const& use) const;
  DeviceInfo const& info() const { return grids_.device->info(); }
  u32 threads() const { return block_.x * block_.y * block_.z; }
  void check_fit() const;
  std::string of_each() const;
  std::string by_processes() const;
  void allow_scratch(cudaFuncAttributes const& kernel) const;

  LaunchSpec const& spec_;
  SharedGrids grids_;
  bool split_;
  void const* entry_;
  dim3 block_;
  u64 shared_;  // bytes of dynamic shared memory of a rank
};

/// One for each physical device of the launch, all of which fit. They refer to `spec`.
/// \throws Error(out_of_memory, bad_argument)
std::vector<GpuLaunch> launches_of(LaunchSpec const& spec, CudaLaunchResources& resources);

}  // namespace meshpost::cuda
