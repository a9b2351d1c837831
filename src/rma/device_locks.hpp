#pragma once
#include <memory>
#include <semaphore>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/peers.hpp"

namespace meshpost {

/// One launch at a time on a physical device, whichever World it comes from: two kernels that each
/// need all their ranks resident could otherwise wait for each other. Of one World: who takes the
/// devices and who gives them back may be different threads.
class DeviceLocks {
 public:
  explicit DeviceLocks(std::vector<std::shared_ptr<Device>> const& of);

  /// Collective; waits until all processes have theirs. \throws Error(peer_lost)
  void take(Peers const& peers);
  /// Whether all were free, and are taken now.
  bool try_take();
  void give_back();

 private:
  std::vector<std::binary_semaphore*> free_;  // in the devices' order
};

}  // namespace meshpost
