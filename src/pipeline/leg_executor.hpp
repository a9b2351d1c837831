#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "meshpost/copy/copy.hpp"
#include "meshpost/pipeline/pipeline.hpp"

namespace meshpost::pipelining {

/// The end of one leg of one chunk: empty if it has been waited for already.
struct Ticket {
  std::shared_ptr<Event> event{};
  std::shared_ptr<Copy> copy{};  // kept so that its errors are reported

  /// \throws Error(device_failed)
  void wait() const {
    if (copy) copy->wait();
    if (event) event->wait();
  }
};

/// Carries one leg of all chunks, in order. A lane of a GPU is a stream. Work is put on it ahead of
/// time and waits for other lanes' streams. A lane of the host is the thread that calls it, which
/// waits by itself. No stream ever waits for the host: streams share hardware queues, and work that
/// the host needs could lie behind the wait.
class LegExecutor {
 public:
  /// `device`: the owner of its stream. Null: it needs none, because the host's threads do the
  /// work.
  explicit LegExecutor(std::shared_ptr<Device> const& device)
      : stream_(device ? device->make_stream() : nullptr), ahead_(stream_ && !stream_->on_host()) {}

  bool ahead() const { return ahead_; }
  Stream& stream() { return *stream_; }

  /// Later work starts after this end, of a lane of the other or of the same sort.
  void after(Ticket const& end) { ahead_&& end.event ? stream_->wait(end.event) : end.wait(); }
  Ticket copy(std::vector<Segment> const& segments);
  /// The end of the work that was put on the stream. On the host, waits for it.
  Ticket end();
  /// Writes the seconds since `start` when the lane reaches this point.
  void stamp(double* where, std::chrono::steady_clock::time_point start);

 private:
  std::unique_ptr<Stream> stream_;
  bool ahead_;
};

/// The device on whose stream chunks move between these levels. Null: the host's threads move them.
std::shared_ptr<Device> mover_between(Level const& from, Level const& to);

}  // namespace meshpost::pipelining
