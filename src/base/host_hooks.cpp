#include "base/host_hooks.hpp"

#include <utility>

namespace meshpost::hooks {
namespace {
HostHook& host_hook() {
  static HostHook hook;
  return hook;
}
}  // namespace

void install_host_hook(HostHook hook) {
  host_hook() = std::move(hook);
  host_hook_installed.store(static_cast<bool>(host_hook()), std::memory_order_release);
}

void call_host_hook(std::string_view place) {
  if (host_hook_installed.load(std::memory_order_acquire)) host_hook()(place);
}

}  // namespace meshpost::hooks
