#pragma once
#include <memory>
#include <vector>

#include "meshpost/device/backend.hpp"

namespace meshpost {

/// `parts` logical devices that share `whole`, "cuda:0.0" and so on.
std::vector<std::shared_ptr<Device>> split_device(std::shared_ptr<Device> const& whole, u32 parts);

/// Grids of a launch that lie side by side on one physical device: on a GPU, one kernel launch.
struct SharedGrids {
  std::shared_ptr<Device> device;  ///< the physical one
  LaunchGrid const* first = nullptr;
  u32 count = 0;
  u32 ranks = 0;  ///< of all grids; they must be resident at once
};

/// The grids by physical device, in their order.
std::vector<SharedGrids> by_physical_device(std::vector<LaunchGrid> const& grids);

}  // namespace meshpost
