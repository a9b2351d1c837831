#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <semaphore>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/peers.hpp"

namespace meshpost {

/// A physical device runs the launches of one World at a time: two kernels that each need all their
/// ranks resident could otherwise wait for each other. Held by a World while any run of its is
/// under way; who takes the devices for one and who gives them back may be different threads.
class DeviceLocks {
 public:
  explicit DeviceLocks(std::vector<std::shared_ptr<Device>> const& of);

  /// For the first run under way. Waits until they are free; or, if others `may_differ` in the
  /// order in which they take devices in several processes, until they are in all. Collective then.
  /// \throws Error(peer_lost)
  void take(Peers const& peers, bool may_differ);
  /// Whether all were free, and are taken now, or were this World's already, and no other waits for
  /// one.
  bool try_take();
  void give_back();

 private:
  struct Lock {
    std::binary_semaphore free{1};
    std::atomic<u32> waiting{0};
    std::atomic<u32> trying{0};  // likewise, but for all processes at once
  };
  static Lock& lock_of(std::string const& name);
  bool take_all_or_none();
  bool somebody_tries() const;

  std::vector<Lock*> locks_;  // in the devices' order
  std::mutex mutex_;
  u32 runs_ = 0;  // that hold them; guarded by it
};

}  // namespace meshpost
