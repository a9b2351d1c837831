#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "meshpost/device/device.hpp"

// Devices that step together. Each is driven by its own host thread.

namespace meshpost {

/// A device of a group, as its thread sees it.
struct Member {
  std::shared_ptr<Device> device;
  u32 index = 0;  ///< in the group
  u32 count = 0;  ///< of the group
};

/// One thread for each device. All calls are thread-safe, except those from inside its functions.
///
/// If a function throws on one thread, the group ends. The others finish this step, and later steps
/// are dropped. Then step_all() or finalize() throws the exception, with the device's name in
/// front. For calls to CUDA a function must make its device current itself.
class DeviceGroup {
 public:
  using Work = std::function<void(Member const&)>;

  /// Calls `init` on every device's thread and returns when all are done. \throws the exception of
  /// `init`, once `deinit` was called on the others and all threads have ended; Error(bad_argument)
  /// for no devices or a null one
  explicit DeviceGroup(std::vector<std::shared_ptr<Device>> devices, Work init = {},
                       Work deinit = {});
  /// As finalize(), but reports errors as warnings. If finalize() would be refused, the threads end
  /// by themselves, later.
  ~DeviceGroup();
  DeviceGroup(DeviceGroup const&) = delete;
  DeviceGroup& operator=(DeviceGroup const&) = delete;

  u32 size() const;

  /// Calls `process` on every device's thread. Returns when all have finished.
  /// \throws Error; Error(misuse) after the group has ended, and from inside functions of this
  /// group, or of another group that this one waits for: each would wait for the other
  void step_all(Work process);
  /// The same, but returns when these members have finished. The others continue, and take the next
  /// step when they have finished this one. \throws also Error(bad_argument) for no such member
  void step_all(Work process, std::vector<u32> const& members);

  /// Waits for all steps, calls `deinit` on every thread whose `init` succeeded, and ends the
  /// threads. Does nothing the second time. \throws as step_all(); Error(misuse) leaves the group
  /// as it was
  void finalize();

  /// True if the calling thread runs one of its functions.
  bool inside() const;
  /// True if its threads have been told to end.
  bool ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with its threads
};

}  // namespace meshpost
