// When no rank of a launch can go on any more.
#include <algorithm>

#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {

// If all workers are idle, no fiber runs: one that has not begun this run is not idle, and one that
// has ended its part stays so. A worker that awakes is first no longer idle, then counts an
// awakening, then runs fibers, then is idle again. Here the awakenings are read first and last, and
// in between, before and after the conditions, that all are idle. A worker that awoke after the
// first look at idle_ and had gone to sleep by the second counted its awakening between the two
// looks at awakenings_; one that had not gone to sleep is seen. So nothing ran while the conditions
// were looked at.
std::optional<u64> CpuLaunch::quiet() {
  u64 const before = awakenings_.load();
  if (idle_.load() != worker_count_) return std::nullopt;
  for (auto const& fiber : resources_.fibers)
    if (!fiber->done.load(std::memory_order_acquire) && ready(*fiber)) return std::nullopt;
  if (idle_.load() != worker_count_ || awakenings_.load() != before) return std::nullopt;
  return before;
}

// Only fibers write words while a launch runs (no host or stream can notify yet): if none of them
// is awake, what does not hold never will. Not so where other processes take part; there the hosts
// ask each other (src/rma/runs/supervising/termination.cpp).
void CpuLaunch::look_for_deadlock() {
  if (spec_.shared || deadlocked_.load(std::memory_order_relaxed) || !quiet() || poisoned()) return;
  bool const alive = std::ranges::any_of(resources_.fibers, [](auto const& fiber) {
    return !fiber->done.load(std::memory_order_acquire);
  });
  if (!alive) return;
  deadlocked_.store(true, std::memory_order_release);
  resources_.wake_host();
}

}  // namespace meshpost::cpu
