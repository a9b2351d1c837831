#pragma once
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "device/cuda/launch_resources.hpp"

namespace meshpost::cuda {

/// The launches of one GPU, one behind the other, as a CUDA graph.
class GraphLaunch {
 public:
  GraphLaunch(int device, std::string name) : device_(device), name_(std::move(name)) {}
  GraphLaunch(GraphLaunch&& other) noexcept;
  GraphLaunch& operator=(GraphLaunch&&) = delete;
  GraphLaunch(GraphLaunch const&) = delete;
  GraphLaunch& operator=(GraphLaunch const&) = delete;
  ~GraphLaunch();

  /// Adds a launch behind the others. \throws Error
  void add(class GpuLaunch const& launch);
  /// Makes the graph, when all launches have been added. \throws Error
  void make();

  int device() const { return device_; }
  std::string const& name() const { return name_; }
  cudaError_t start(cudaStream_t stream) const { return cudaGraphLaunch(made_, stream); }

 private:
  int device_;
  std::string name_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t last_ = nullptr;
  cudaGraphExec_t made_ = nullptr;
};

class CudaGraph : public LaunchGraph {
 public:
  /// \throws Error as launches do
  CudaGraph(std::vector<LaunchSpec> const& steps, CudaLaunchResources& resources);
  std::vector<GraphLaunch> const& launches() const { return launches_; }
  std::string const& name() const { return name_; }

 private:
  std::string const name_;
  std::vector<GraphLaunch> launches_;  // of each device
};

}  // namespace meshpost::cuda
