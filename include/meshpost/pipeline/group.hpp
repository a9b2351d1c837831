#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "meshpost/device/device.hpp"

// Devices that step together, each driven by a thread of the host of its own.

namespace meshpost {

/// A device of a group, as its thread sees it.
struct Member {
  std::shared_ptr<Device> device;
  u32 index = 0;  ///< in the group
  u32 count = 0;  ///< of the group
};

/// One thread a device. All calls but those from inside its functions are thread-safe.
///
/// A function that throws on one thread ends the group: the others do this step to its end, later
/// ones are dropped, and step_all() or finalize() throws what was thrown with the device's name
/// before it. For CUDA's own calls a function makes its device current itself.
class DeviceGroup {
 public:
  using Work = std::function<void(Member const&)>;

  /// Calls `init` on every device's thread and returns when all are done. \throws what it threw,
  /// once `deinit` was called on the others and all threads have ended; Error(bad_argument) for no
  /// devices or a null one
  explicit DeviceGroup(std::vector<std::shared_ptr<Device>> devices, Work init = {},
                       Work deinit = {});
  /// As finalize(), but reports errors as warnings. Where that is refused, its threads end by
  /// themselves, later.
  ~DeviceGroup();
  DeviceGroup(DeviceGroup const&) = delete;
  DeviceGroup& operator=(DeviceGroup const&) = delete;

  u32 size() const;

  /// Calls `process` on every device's thread. Returns when all are through.
  /// \throws Error; Error(misuse) from inside the group's functions, or another group's that this
  /// one waits for, so that each would wait for the other; also after it has ended
  void step_all(Work process);
  /// The same, but returns when these members are through; the others go on, and take the next step
  /// when they are through with this one. \throws also Error(bad_argument) for no such member
  void step_all(Work process, std::vector<u32> const& members);

  /// Waits for all steps, calls `deinit` on every thread whose `init` was done, and ends the
  /// threads. Does nothing the second time. \throws as step_all(); Error(misuse) leaves it as it
  /// was
  void finalize();

  /// Whether the calling thread runs one of its functions.
  bool inside() const;
  /// Whether its threads have been told to end.
  bool ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // its threads' as well
};

}  // namespace meshpost
