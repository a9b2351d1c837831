#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/peers.hpp"

namespace meshpost {

/// One launch at a time on a physical device, whichever World it comes from: two kernels that each need all
/// their ranks resident could otherwise wait for each other. Collective.
class DeviceLocks {
 public:
  DeviceLocks(std::vector<std::shared_ptr<Device>> const& of, Peers const& peers);

 private:
  void lock();
  bool try_lock();

  std::vector<std::unique_lock<std::mutex>> locks_;  // in the devices' order
};

}  // namespace meshpost
