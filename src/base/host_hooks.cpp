#include "base/host_hooks.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace meshpost::hooks {
namespace {

// Threads that serve the whole process may be within the old hook, or about to call it. So whoever
// calls a hook owns a share of it, and calls it without the lock, because a hook may wait.
struct Installed {
  std::mutex mutex;
  std::shared_ptr<HostHook const> hook;
};

Installed& installed() {
  static auto& one = *new Installed;  // those threads may end after main
  return one;
}

}  // namespace

void install_host_hook(HostHook hook) {
  auto next = hook ? std::make_shared<HostHook const>(std::move(hook)) : nullptr;
  std::scoped_lock const lock(installed().mutex);
  host_hook_installed.store(next != nullptr, std::memory_order_relaxed);
  installed().hook.swap(next);
}

void call_host_hook(std::string_view place) {
  std::unique_lock lock(installed().mutex);
  auto const hook = installed().hook;
  lock.unlock();
  if (hook) (*hook)(place);
}

}  // namespace meshpost::hooks
