#include "base/host_hooks.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace meshpost::hooks {
namespace {

// Threads that serve the whole process may be within the old hook, or about to call it. So whoever
// calls a hook owns a share of it, and calls it without the lock, because a hook may wait.
struct HostHooks {
  std::mutex mutex;
  std::shared_ptr<HostHook const> hook;
};

HostHooks& host_hooks() {
  static auto& one = *new HostHooks;  // those threads may end after main
  return one;
}

}  // namespace

void install_host_hook(HostHook hook) {
  auto next = hook ? std::make_shared<HostHook const>(std::move(hook)) : nullptr;
  std::scoped_lock const lock(host_hooks().mutex);
  host_hook_installed.store(next != nullptr, std::memory_order_relaxed);
  host_hooks().hook.swap(next);
}

void call_host_hook(std::string_view place) {
  std::unique_lock lock(host_hooks().mutex);
  auto const hook = host_hooks().hook;
  lock.unlock();
  if (hook) (*hook)(place);
}

}  // namespace meshpost::hooks
