#include "base/kept.hpp"

#include <pthread.h>

#include <atomic>
#include <new>

namespace meshpost {
namespace {

std::atomic<bool> forked{false};

struct Kept {
  void const* what;
  Kept* next;
};
std::atomic<Kept*> kept{nullptr};

}  // namespace

bool begin_use() noexcept {
  [[maybe_unused]] static int const noted =
      pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  return !is_forked();
}

// Relaxed: only the child's first thread writes it, before fork() returns there; threads that it
// starts see what it did before.
bool is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

// A list without a lock: one could be held for ever in a child, by a thread that only the parent
// has. Nobody reads the list but leak detectors.
void keep_for_ever(void const* what) noexcept {
  auto* const one = new (std::nothrow) Kept{what, kept.load(std::memory_order_relaxed)};
  if (!one) return;  // it is kept all the same, and a leak detector says so
  while (!kept.compare_exchange_weak(one->next, one, std::memory_order_relaxed)) {
  }
}

}  // namespace meshpost
