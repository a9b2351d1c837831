#include "device/cuda/graph.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/cuda/check.hpp"
#include "device/cuda/gpu_launch.hpp"

namespace meshpost::cuda {

GraphLaunch::GraphLaunch(GraphLaunch&& other) noexcept
    : device_(other.device_),
      name_(std::move(other.name_)),
      graph_(std::exchange(other.graph_, nullptr)),
      last_(other.last_),
      made_(std::exchange(other.made_, nullptr)) {}

GraphLaunch::~GraphLaunch() {
  Current const any;
  if (made_) cudaGraphExecDestroy(made_);
  if (graph_) cudaGraphDestroy(graph_);
}

void GraphLaunch::add(GpuLaunch const& launch) {
  Current const current(device_);
  auto const what = fmt::format("put {} into a graph", launch.name());
  if (!graph_) check(cudaGraphCreate(&graph_, 0), what);
  check(launch.add_to(graph_, last_), what);
}

void GraphLaunch::make() {
  Current const current(device_);
  check(cudaGraphInstantiate(&made_, graph_, 0), fmt::format("make {}", name_));
  check(cudaGraphDestroy(std::exchange(graph_, nullptr)), fmt::format("make {}", name_));
}

CudaGraph::CudaGraph(std::vector<LaunchSpec> const& steps, CudaLaunchResources& resources)
    : name_(fmt::format("a graph of {} runs", steps.size())) {
  for (auto const& step : steps) {
    auto const launches = launches_of(step, resources);
    if (launches_.empty())
      for (auto const& launch : launches)
        launches_.emplace_back(launch.device(),
                               fmt::format("{} on cuda:{}", name_, launch.device()));
    for (std::size_t i = 0; i < launches.size(); ++i) launches_[i].add(launches[i]);
  }
  for (auto& launch : launches_) launch.make();
}

}  // namespace meshpost::cuda
