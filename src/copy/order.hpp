#pragma once
#include <functional>
#include <vector>

#include "copy/state.hpp"

namespace meshpost::copying {

/// Work that streams come before and go on after.
struct Work {
  std::function<void()> make;          ///< returns when it is done; called on a thread of the host
  std::function<void(Stream&)> queue;  ///< null if no stream of a device can do all of it
  /// In the place of `make`, where it waits for another process: returns when it is begun. The
  /// state's event is the host's.
  std::function<StatePtr()> begin{};
};

/// Does `work` after what `streams`, of which there are some, hold, and lets them go on after it.
///
/// If all are of the host, or streams of devices take the work whole, this returns at once. Else it
/// returns when the work is done: a device's stream may wait only for what a device has queued, for
/// behind the wait could lie what the host's part of the work needs.
///
/// Also where threads do this at once with the same streams, and for a stream that is named twice.
/// If it throws, `work` is not done, and the streams go on.
/// \throws Error(bad_argument) if a stream is null; Error(out_of_memory) without a thread
StatePtr between(std::vector<Stream*> const& streams, Work const& work);

}  // namespace meshpost::copying
