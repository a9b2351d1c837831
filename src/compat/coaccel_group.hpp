#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "meshpost/base/config.hpp"
#include "meshpost/compat/coaccel.h"
#include "meshpost/device/backend.hpp"
#include "meshpost/pipeline/pipeline.hpp"

/// A device, or a memory of the host. `mutex` guards all but `level`.
struct coaccel_device_s {
  meshpost::Level level{};
  std::mutex mutex{};
  std::condition_variable unlocked{};
  std::thread::id owner{};  // of the device's lock
  unsigned locks = 0;
  std::map<void*, meshpost::Allocation> allocations{};
};

struct coaccel_device_group_s {
  std::vector<coaccel_device> devices;
  int compute;
};
