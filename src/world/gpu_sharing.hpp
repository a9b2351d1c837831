#pragma once
#include <string>
#include <vector>

#include "meshpost/base/types.hpp"

// Processes of a job that use the same GPU. Plain values: nothing here asks a device.

namespace meshpost {

/// A physical device that a process uses.
struct DeviceUse {
  u32 process = 0;
  std::string name;     ///< "cuda:0": that process's name for it
  std::string uuid;     ///< the same in all processes; empty: can't be shared
  bool at_once = true;  ///< kernels of several processes run on it at the same time
};

/// How many processes run kernels at the same time on one device. The highest number among this
/// process's devices; at least 1.
u32 sharers(std::vector<DeviceUse> const& uses, u32 process);

/// Which of `gpus` a process takes by default. The processes of a host share its GPUs evenly,
/// independent of their numbers in the job. `hosts`: text by process that identifies its host.
u32 default_gpu(std::vector<std::string> const& hosts, u32 process, u32 gpus);

/// A warning for each device on which kernels of several processes can only take turns. It names
/// the processes and the remedy.
std::vector<std::string> turns_taken(std::vector<DeviceUse> const& uses);

}  // namespace meshpost
