#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "compat/coaccel_far.hpp"
#include "meshpost/base/config.hpp"
#include "meshpost/compat/coaccel.h"
#include "meshpost/device/backend.hpp"
#include "meshpost/pipeline/pipeline.hpp"

/// A device, or a memory of the host. `mutex` guards all members except `level` and `far`.
/// `changed` is notified when a thread that waits for the device may have it.
struct coaccel_device_s {
  meshpost::Level level{};
  std::shared_ptr<meshpost::coaccel::FarDevice> far{};  // another process's memory; null: here
  std::mutex mutex{};
  std::condition_variable changed{};
  std::thread::id owner{};  // of the device's lock
  unsigned locks = 0;
  unsigned calls = 0;  // calls in progress; the lock waits for them
  std::map<void*, meshpost::Allocation> allocations{};

  bool mine_or_free() const { return locks == 0 || owner == std::this_thread::get_id(); }
};

namespace meshpost::coaccel {

/// A call that uses the device. It begins when no other thread has locked the device, and keeps
/// others from locking it until it is over.
class DeviceCall {
 public:
  explicit DeviceCall(coaccel_device_s& device) : device_(device) {
    std::unique_lock lock(device_.mutex);
    device_.changed.wait(lock, [&] { return device_.mine_or_free(); });
    ++device_.calls;
  }
  ~DeviceCall() {
    std::scoped_lock const lock(device_.mutex);
    if (--device_.calls == 0) device_.changed.notify_all();
  }
  DeviceCall(DeviceCall const&) = delete;
  DeviceCall& operator=(DeviceCall const&) = delete;

 private:
  coaccel_device_s& device_;
};

}  // namespace meshpost::coaccel

struct coaccel_device_group_s {
  std::vector<coaccel_device> devices;
  int compute;
};
