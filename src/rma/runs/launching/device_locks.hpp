#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "meshpost/device/device.hpp"
#include "world/process_group.hpp"

namespace meshpost {

/// Decides which World may launch on a GPU. Two kernels that each need all their ranks resident,
/// and each have a part of the machine, could wait for each other for ever.
///
/// Runs that need nothing of their hosts while they run share the GPUs. They are queued on them, in
/// one order on all (device/cuda/cooperative_launch.cpp), and no host waits. A run that its host
/// has to help (with copies, say) must not have others queued behind it on the GPU. Otherwise the
/// host's requests to the GPU could lie behind those. So that run has the GPUs for itself.
///
/// A World holds the locks while any of its runs is in progress. One thread may take the devices
/// and another may give them back. CPU devices have no locks, because each World has its own
/// threads there.
class DeviceLocks {
 public:
  enum class Use { shared, alone };

  explicit DeviceLocks(std::vector<std::shared_ptr<Device>> const& of);

  /// For the first run in progress. Waits until they are free. If others `may_differ` in the order
  /// in which they take devices in several processes, it waits until they are free in all
  /// processes, and is collective.
  /// \throws Error(peer_lost)
  void take(Use use, ProcessGroup const& group, bool may_differ);
  /// True if they are taken now, or were this World's already. False if that needs a wait, or
  /// another waits for one. Runs in progress at once have the same use.
  bool try_take(Use use);
  void give_back();

 private:
  struct Lock {
    std::mutex mutex;
    std::condition_variable changed;
    u32 sharers = 0;  // number of Worlds
    bool alone = false;
    std::atomic<u32> waiting{0};
    std::atomic<u32> trying{0};  // the same, for Worlds that take them in all processes at once

    void take(Use use);
    bool try_take(Use use);
    void give_back(Use use);
  };
  static Lock& lock_of(std::string const& name);
  bool take_all_or_none(Use use);
  bool somebody_tries() const;

  std::vector<Lock*> locks_;  // in the devices' order
  std::mutex mutex_;
  u32 runs_ = 0;  // runs that hold them; guarded by mutex_, as the next
  Use use_ = Use::shared;
};

}  // namespace meshpost
