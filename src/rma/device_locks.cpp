#include "rma/device_locks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>

namespace meshpost {
namespace {

constexpr u32 most_pause = 10'000;  // microseconds

std::mutex& mutex_of(std::string const& name) {
  static std::mutex guard;
  static auto* const all = new std::map<std::string, std::mutex>;
  std::scoped_lock const lock(guard);
  return (*all)[name];
}

}  // namespace

// Within a process locks are taken in the devices' order. Runs of one job come in the order of its
// process 0 (run.cpp), so all its processes lock for the same run. Jobs that share processes have
// no such order, so a process that held its own lock while another waits for its could wait for
// ever. There nobody waits for a lock: each tries, and if one has not got its own, all let go and
// try again a while later, by chance, so that two jobs don't meet each time. To wait until a lock
// is free would be wrong too: by then the others may have theirs again, and wait for this process.
DeviceLocks::DeviceLocks(std::vector<std::shared_ptr<Device>> const& of, Peers const& peers) {
  auto devices = physical_devices(of);
  std::ranges::sort(devices, {},
                    [](auto const& device) { return std::pair(device->kind(), device->index()); });
  for (auto const& device : devices) locks_.emplace_back(mutex_of(device->name()), std::defer_lock);
  if (peers.alone() || !peers.processes().job().overlaps) {
    lock();
    return;
  }
  std::minstd_rand random(std::random_device{}());
  for (u32 most = 200;; most = std::min(2 * most, most_pause)) {
    auto const all = peers.exchange("begin a run", try_lock() ? "locked" : "");
    if (std::ranges::none_of(all, &std::string::empty)) return;
    for (auto& one : locks_)
      if (one.owns_lock()) one.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % most));
  }
}

void DeviceLocks::lock() {
  for (auto& one : locks_) one.lock();
}

bool DeviceLocks::try_lock() {
  return std::ranges::all_of(locks_, [](auto& one) { return one.try_lock(); });
}

}  // namespace meshpost
