#pragma once
#include <mutex>

#include "copy/state.hpp"

namespace meshpost::copying {

/// A stream of a device for copies in one direction. Thread-safe; lives as long as the process.
///
/// Nothing in a lane ever waits for the user's streams. So all work in it ends by itself.
class CopyStream {
 public:
  /// Copies this large have an event of their own.
  static constexpr u64 large = u64{64} << 10;

  explicit CopyStream(Device& device) : stream_(device.make_stream()) {}

  /// An event costs more than a small copy, so small ones share one. It is recorded when the first
  /// of them is asked about. So it may be done a few small copies later than the one asked about.
  StatePtr copy(void* target, void const* source, u64 size);
  StatePtr copy(PitchedCopy const& rows);

 private:
  class Shared;
  std::mutex mutex_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Shared> open_;  // of the small copies since the last event
};

/// Kinds of copies that must not delay each other. Copies of pageable memory block the thread that
/// starts them. Copies of a batch to several devices go one after the other (start_all).
enum class Traffic { small, large, pageable, rounds };

/// The lane of `device` for copies that move bytes between its memory and `other`'s (null: the
/// host's). Thread-safe.
CopyStream& copy_stream(Device& device, Device const* other, bool outward, Traffic traffic);

}  // namespace meshpost::copying
