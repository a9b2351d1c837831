#pragma once
#include <atomic>
#include <functional>
#include <string_view>

namespace meshpost::hooks {

/// Called at places in the host's own work that a test may want to reach, such as "start the
/// proxy's thread". It may wait there, or throw what the work itself could throw. Any thread calls
/// it, also several at once.
using PlaceHook = std::function<void(std::string_view place)>;

/// Installs `hook` for the whole process, null to remove it. Not during a run.
void install_places(PlaceHook hook);

inline std::atomic<bool> places_installed{false};
void tell_place(std::string_view place);

/// Without a hook it costs one relaxed load.
inline void at(std::string_view place) {
  if (places_installed.load(std::memory_order_relaxed)) tell_place(place);
}

}  // namespace meshpost::hooks
