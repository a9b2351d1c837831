// Detects that no rank of a launch can continue any more.
#include <algorithm>

#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {

// If all workers are idle, no fiber runs: a worker that has not begun this run is not idle, and one
// that has ended its part stays idle. A worker that wakes up first stops being idle, then counts an
// awakening, then runs fibers, then is idle again. This function reads awakenings_ first and last.
// In between, before and after the conditions, it reads that all are idle. Take a worker that woke
// up after the first look at idle_. If it was idle again by the second look, it counted its
// awakening between the two looks at awakenings_. If it was not idle again, the second look shows
// it. So nothing ran while the conditions were read.
std::optional<u64> CpuLaunch::quiet() {
  u64 const before = awakenings_.load();
  if (idle_.load() != worker_count_) return std::nullopt;
  for (auto const& fiber : resources_.fibers)
    if (!fiber->done.load(std::memory_order_acquire) && ready(*fiber)) return std::nullopt;
  if (idle_.load() != worker_count_ || awakenings_.load() != before) return std::nullopt;
  return before;
}

// Only fibers write words while a launch runs (no host or stream can notify yet). So if no fiber is
// awake, a condition that does not hold never will. This is not so if other processes take part;
// there the hosts ask each other (src/rma/runs/supervising/termination.cpp).
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
