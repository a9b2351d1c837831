#include "base/fork.hpp"

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

// Relaxed is enough: only the child's first thread writes it, before fork() returns there. Threads
// that it starts see its earlier stores.
bool is_forked() noexcept { return forked.load(std::memory_order_relaxed); }

// A list without a lock. A lock could be held for ever in a child, by a thread that only the parent
// has. Only leak detectors read the list.
void keep_for_ever(void const* what) noexcept {
  auto* const one = new (std::nothrow) Kept{what, kept.load(std::memory_order_relaxed)};
  if (!one) return;  // the memory is kept all the same, and a leak detector reports it
  while (!kept.compare_exchange_weak(one->next, one, std::memory_order_relaxed)) {
  }
}

}  // namespace meshpost
