#include "world/gpu_sharing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace meshpost {
namespace {

std::set<u32> users(std::vector<DeviceUse> const& uses, std::string const& uuid) {
  std::set<u32> processes;
  for (auto const& use : uses)
    if (use.uuid == uuid) processes.insert(use.process);
  return processes;
}

}  // namespace

u32 sharers(std::vector<DeviceUse> const& uses, u32 process) {
  std::size_t most = 1;
  for (auto const& use : uses)
    if (use.process == process && use.at_once && !use.uuid.empty())
      most = std::max(most, users(uses, use.uuid).size());
  return static_cast<u32>(most);
}

u32 default_gpu(std::vector<std::string> const& hosts, u32 process, u32 gpus) {
  auto const place = std::count(hosts.begin(), hosts.begin() + process, hosts[process]);
  return static_cast<u32>(place) % gpus;
}

std::vector<std::string> turns_taken(std::vector<DeviceUse> const& uses) {
  std::vector<std::string> warnings;
  std::set<std::string> told;
  for (auto const& use : uses) {
    if (use.uuid.empty() || use.at_once || !told.insert(use.uuid).second) continue;
    auto const processes = users(uses, use.uuid);
    if (processes.size() < 2) continue;
    warnings.push_back(fmt::format(
        "World: processes {} share {} ({}), and MPS does not serve it: their kernels take turns of "
        "milliseconds, and a kernel that waits for the other process waits until that has its "
        "turn; start MPS "
        "(nvidia-cuda-mps-control -d), give each process a GPU of its own (MESHPOST_DEVICES), or "
        "run one process with logical devices ({}*{})",
        fmt::join(processes, ", "), use.name, use.uuid, use.name, processes.size()));
  }
  return warnings;
}

}  // namespace meshpost
