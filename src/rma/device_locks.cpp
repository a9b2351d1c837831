#include "rma/device_locks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

namespace meshpost {
namespace {

constexpr u32 most_pause = 10'000;  // microseconds

std::binary_semaphore& semaphore_of(std::string const& name) {
  static std::mutex guard;
  static auto* const all = new std::map<std::string, std::binary_semaphore>;
  std::scoped_lock const lock(guard);
  return all->try_emplace(name, 1).first->second;
}

}  // namespace

// Within a process locks are taken in the devices' order. Runs of one job come in the order of its
// process 0 (run.cpp), so all its processes lock for the same run. Jobs that share processes have
// no such order, so a process that held its own lock while another waits for its could wait for
// ever. There nobody waits for a lock: each tries, and if one has not got its own, all let go and
// try again a while later, by chance, so that two jobs don't meet each time. To wait until a lock
// is free would be wrong too: by then the others may have theirs again, and wait for this process.
void DeviceLocks::take(Peers const& peers) {
  if (peers.alone() || !peers.processes().job().overlaps) {
    for (auto* const one : free_) one->acquire();
    return;
  }
  std::minstd_rand random(std::random_device{}());
  for (u32 most = 200;; most = std::min(2 * most, most_pause)) {
    bool const taken = try_take();
    try {
      auto const all = peers.exchange("begin a run", taken ? "taken" : "");
      if (std::ranges::none_of(all, &std::string::empty)) return;
    } catch (...) {
      if (taken) give_back();
      throw;
    }
    if (taken) give_back();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % most));
  }
}

DeviceLocks::DeviceLocks(std::vector<std::shared_ptr<Device>> const& of) {
  auto devices = physical_devices(of);
  std::ranges::sort(devices, {},
                    [](auto const& device) { return std::pair(device->kind(), device->index()); });
  for (auto const& device : devices) free_.push_back(&semaphore_of(device->name()));
}

bool DeviceLocks::try_take() {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    if (free_[i]->try_acquire()) continue;
    while (i-- > 0) free_[i]->release();
    return false;
  }
  return true;
}

void DeviceLocks::give_back() {
  for (auto* const one : free_) one->release();
}

}  // namespace meshpost
