#pragma once
#include <atomic>
#include <functional>
#include <string_view>

namespace meshpost::hooks {

/// Called at places in the host's own work that a test may want to reach, such as "start the
/// proxy's thread". It may wait there, or throw what the work itself could throw. Any thread calls
/// it, also several at once.
using HostHook = std::function<void(std::string_view place)>;

/// Installs `hook` for the whole process, null to remove it. A thread that is within the old hook
/// may still be there afterwards.
void install_host_hook(HostHook hook);

inline std::atomic<bool> host_hook_installed{false};
void call_host_hook(std::string_view place);

/// Without a hook it costs one relaxed load.
inline void at(std::string_view place) {
  if (host_hook_installed.load(std::memory_order_relaxed)) call_host_hook(place);
}

}  // namespace meshpost::hooks
