#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/process_group.hpp"

namespace meshpost {

/// Who may launch on a GPU. Two kernels that each need all their ranks resident, and each have a
/// part of the machine, could wait for each other for ever.
///
/// Runs that need nothing of their hosts on their way share the GPUs: they are queued on them, in
/// one order on all (device/cuda/cooperative_launch.cpp), and no host waits. A run that its host
/// has to help (with copies, say) must not have others queued behind it on the GPU, for what the
/// host asks of the GPU could come to lie behind those: so it has the GPUs for itself.
///
/// Held by a World while any run of its is under way; who takes the devices for one and who gives
/// them back may be different threads. CPU devices are no such devices: each World has threads of
/// its own there.
class DeviceLocks {
 public:
  enum class Use { shared, alone };

  explicit DeviceLocks(std::vector<std::shared_ptr<Device>> const& of);

  /// For the first run under way. Waits until they are free; or, if others `may_differ` in the
  /// order in which they take devices in several processes, until they are in all. Collective then.
  /// \throws Error(peer_lost)
  void take(Use use, ProcessGroup const& group, bool may_differ);
  /// Whether none has to be waited for, and they are taken now, or were this World's already, and
  /// no other waits for one. Runs under way at once have the same use.
  bool try_take(Use use);
  void give_back();

 private:
  struct Lock {
    std::mutex mutex;
    std::condition_variable changed;
    u32 sharers = 0;  // Worlds
    bool alone = false;
    std::atomic<u32> waiting{0};
    std::atomic<u32> trying{0};  // likewise, but for all processes at once

    void take(Use use);
    bool try_take(Use use);
    void give_back(Use use);
  };
  static Lock& lock_of(std::string const& name);
  bool take_all_or_none(Use use);
  bool somebody_tries() const;

  std::vector<Lock*> locks_;  // in the devices' order
  std::mutex mutex_;
  u32 runs_ = 0;  // that hold them; guarded by it, as the next
  Use use_ = Use::shared;
};

}  // namespace meshpost
