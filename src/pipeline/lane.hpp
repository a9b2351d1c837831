#pragma once
#include <chrono>
#include <vector>

#include "meshpost/copy/copy.hpp"
#include "meshpost/pipeline/pipeline.hpp"
#include "pipeline/failure.hpp"

namespace meshpost {

/// What carries one leg of all chunks, in order: a stream of a device, or a thread of the host.
class Lane {
 public:
  /// A stream of `device` that the lane's work is put on; null: a thread of the host, which does it.
  Lane(std::shared_ptr<Device> const& device, Failure& failure);

  bool on_host() const { return host_; }
  Stream& stream() { return *stream_; }

  /// Later work of the lane waits for `event`. A lost device is noted, not thrown on another thread.
  void hold(std::shared_ptr<Event> event, std::string const& where);
  /// Does `work` on the host's thread, unless the run has failed by then.
  void on_thread(std::string where, std::function<void()> work);
  /// Writes the time of the moment when the lane gets here.
  void stamp(double* where, std::chrono::steady_clock::time_point start);
  /// Copies, in the lane's order.
  void copy(std::vector<Segment> segments, std::string const& where);
  /// The end of what was put here since the last mark.
  std::shared_ptr<Event> mark();
  /// Waits for everything; reports nothing.
  void drain() noexcept;

 private:
  bool host_;
  Failure* failure_;
  std::unique_ptr<Stream> stream_;
};

/// The device on whose stream chunks move between these levels; null: the host's threads move them.
std::shared_ptr<Device> mover_between(Level const& from, Level const& to);
/// Whether work on this device's memory goes through streams of its own, not the host's threads.
bool has_own_streams(Device& device);

}  // namespace meshpost
