#pragma once
#include <functional>
#include <vector>

#include "copy/state.hpp"

namespace meshpost::copying {

/// Work that streams come before and go on after.
struct Work {
  std::function<void()> make;          ///< returns when it is done; called on a thread of the host
  std::function<void(Stream&)> queue;  ///< null if no stream of a device can do all of it
};

/// Does `work` after what `streams`, of which there are some, hold, and lets them go on after it.
///
/// If all are of the host, or streams of devices take the work whole, this returns at once. Else it
/// returns when the work is done: a device's stream may wait only for what a device has queued, for
/// behind the wait could lie what the host's part of the work needs.
/// \throws Error(bad_argument) if a stream is null
StatePtr between(std::vector<Stream*> const& streams, Work const& work);

}  // namespace meshpost::copying
