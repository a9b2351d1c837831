#include "rma/runs/launching/device_locks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "meshpost/device/backend.hpp"

namespace meshpost {
namespace {

constexpr u32 most_pause = 10'000;  // microseconds
constexpr std::chrono::milliseconds others_turn{2};

}  // namespace

void DeviceLocks::Lock::take(Use use) {
  std::unique_lock lock(mutex);
  waiting.fetch_add(1);
  changed.wait(lock, [&] { return !alone && (use == Use::shared || sharers == 0); });
  waiting.fetch_sub(1);
  if (use == Use::shared) ++sharers;
  else alone = true;
}

bool DeviceLocks::Lock::try_take(Use use) {
  std::scoped_lock const lock(mutex);
  if (alone || (use == Use::alone && sharers != 0)) return false;
  if (use == Use::shared) ++sharers;
  else alone = true;
  return true;
}

void DeviceLocks::Lock::give_back(Use use) {
  std::scoped_lock const lock(mutex);
  if (use == Use::shared) --sharers;
  else alone = false;
  changed.notify_all();
}

// Within a process locks are taken in the devices' order. If a World of several processes is the
// only one (Agreement::crowded), it takes its locks in each process independently. If there are
// others, or other jobs in the same processes, they have no common order. So a process that held
// its own lock while another waits for its could wait for ever. Then nobody waits for a lock. Each
// process tries. If one has not got its lock, all give theirs back and try again after a random
// time, so that two jobs don't collide each time. To wait until a lock is free would be wrong too:
// by then the others may have theirs again, and wait for this process.
void DeviceLocks::take(Use use, ProcessGroup const& group, bool may_differ) {
  if (!may_differ) {
    // A World that takes them in all processes or in none must sometimes find them free in all.
    if (somebody_tries()) std::this_thread::sleep_for(others_turn);
    for (auto* const lock : locks_) lock->take(use);
  } else {
    struct Tries {
      explicit Tries(std::vector<Lock*> const& of) : locks(of) {
        for (auto* const lock : locks) lock->trying.fetch_add(1);
      }
      Tries(Tries const&) = delete;
      Tries& operator=(Tries const&) = delete;
      ~Tries() {
        for (auto* const lock : locks) lock->trying.fetch_sub(1);
      }
      std::vector<Lock*> const& locks;
    } const tries(locks_);
    std::minstd_rand random(std::random_device{}());
    for (u32 most = 200;; most = std::min(2 * most, most_pause)) {
      bool const taken = take_all_or_none(use);
      auto const let_go = [&] {
        for (auto* const lock : locks_)
          if (taken) lock->give_back(use);
      };
      try {
        auto const all = group.exchange("begin a run", taken ? "taken" : "");
        if (std::ranges::none_of(all, &std::string::empty)) break;
      } catch (...) {
        let_go();
        throw;
      }
      let_go();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % most));
    }
  }
  std::scoped_lock const lock(mutex_);
  use_ = use;
  ++runs_;
}

DeviceLocks::DeviceLocks(std::vector<std::shared_ptr<Device>> const& of) {
  auto devices = physical_devices(of);
  std::erase_if(devices,
                [](auto const& device) { return !backend(device->kind()).queues_launches(); });
  std::ranges::sort(devices, {},
                    [](auto const& device) { return std::pair(device->kind(), device->index()); });
  for (auto const& device : devices) locks_.push_back(&lock_of(device->name()));
}

DeviceLocks::Lock& DeviceLocks::lock_of(std::string const& name) {
  static std::mutex guard;
  static auto* const all = new std::map<std::string, Lock>;
  std::scoped_lock const lock(guard);
  return (*all)[name];
}

bool DeviceLocks::take_all_or_none(Use use) {
  for (std::size_t i = 0; i < locks_.size(); ++i) {
    if (locks_[i]->try_take(use)) continue;
    while (i-- > 0) locks_[i]->give_back(use);
    return false;
  }
  return true;
}

bool DeviceLocks::somebody_tries() const {
  return std::ranges::any_of(locks_, [](auto* const one) { return one->trying.load() != 0; });
}

// A World that launches continuously lets others in between: it takes no lock for which another
// waits.
bool DeviceLocks::try_take(Use use) {
  std::scoped_lock const lock(mutex_);
  if (somebody_tries() ||
      std::ranges::any_of(locks_, [](auto* const one) { return one->waiting.load() != 0; }))
    return false;
  if (runs_ == 0 && !take_all_or_none(use)) return false;
  use_ = use;
  ++runs_;
  return true;
}

void DeviceLocks::give_back() {
  std::scoped_lock const lock(mutex_);
  if (--runs_ != 0) return;
  for (auto* const one : locks_) one->give_back(use_);
}

}  // namespace meshpost
