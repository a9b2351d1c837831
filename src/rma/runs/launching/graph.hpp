#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/rma/freed_windows.hpp"
#include "meshpost/rma/graph.hpp"

namespace meshpost::detail {

/// A kernel and how it is launched.
struct GraphStep {
  KernelImage image;
  std::vector<std::max_align_t> kernel;  ///< a copy of the kernel object
  Launch launch;
};

std::vector<std::max_align_t> copy_of_kernel(void const* kernel, std::size_t bytes);

/// A graph as devices have it, for one World. Runs in progress keep it alive.
struct GraphOnDevices {
  u32 world = 0;
  /// The values in the runs' states that may change later, by own device.
  std::vector<FreedWindows> freed{};
  std::vector<std::unique_ptr<LaunchGraph>> of_kinds{};

  bool fits(u32 other_world, std::vector<FreedWindows> const& now) const;
};

struct GraphRecord {
  std::mutex mutex;              // of all members
  std::vector<GraphStep> steps;  // read without the mutex once `launched`
  bool launched = false;
  std::shared_ptr<GraphOnDevices> on_devices{};  // of the last launch
};

}  // namespace meshpost::detail
