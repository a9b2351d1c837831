#pragma once
#include <functional>
#include <vector>

#include "copy/state.hpp"

namespace meshpost::copying {

/// Work between earlier and later work of streams.
struct Work {
  std::function<void()> make;          ///< returns when it is done; called on a thread of the host
  std::function<void(Stream&)> queue;  ///< null if no stream of a device can do all of it
  /// Used instead of `make` if the work waits for another process: returns when it has begun. The
  /// state's event is the host's.
  std::function<StatePtr()> begin{};
};

/// Does `work` after all earlier work of `streams`, which is not empty. Their later work begins
/// after it.
///
/// If all are of the host, or streams of devices can do the whole work, this returns at once.
/// Otherwise it returns when the work is done. A device's stream may wait only for work that a
/// device has queued. Behind the wait could be work that the host's part needs.
///
/// Several threads may do this at once with the same streams, and a stream may be named twice. If
/// it throws, `work` is not done, and the streams continue.
/// \throws Error(bad_argument) if a stream is null; Error(out_of_memory) without a thread
StatePtr between(std::vector<Stream*> const& streams, Work const& work);

}  // namespace meshpost::copying
