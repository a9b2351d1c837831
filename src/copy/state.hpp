#pragma once
#include <functional>
#include <optional>

#include "device/cpu/event.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/copy/copy.hpp"

namespace meshpost {

/// The state of a copy in progress. Thread-safe.
struct Copy::State {
  virtual ~State() = default;
  /// \throws Error(device_failed), each time
  virtual void wait() = 0;
  virtual bool done() = 0;
  virtual std::shared_ptr<Event> event() = 0;
};

namespace copying {

using StatePtr = std::shared_ptr<Copy::State>;

/// A copy that a thread of the host makes or controls.
class HostState : public Copy::State {
 public:
  /// Does the work on this thread. An exception is kept, as an Error.
  void run(std::function<void()> const& work);
  void wait() override;
  /// The error of the work. Call it when the work is done.
  std::optional<Error> const& error() const { return error_; }
  bool done() override { return event_->done(); }
  std::shared_ptr<Event> event() override { return event_; }

 private:
  std::shared_ptr<cpu::HostEvent> event_ = std::make_shared<cpu::HostEvent>();
  std::optional<Error> error_;  // written before the event, read after it
};

/// A copy that a device's stream makes. It is done at `event`.
class StreamState : public Copy::State {
 public:
  explicit StreamState(std::shared_ptr<Event> event) : event_(std::move(event)) {}
  void wait() override { event_->wait(); }
  bool done() override { return event_->done(); }
  std::shared_ptr<Event> event() override { return event_; }

 private:
  std::shared_ptr<Event> event_;
};

/// A copy that is over.
StatePtr finished();

/// Refuses callers that must not wait for threads of the library. A kernel on a CPU device would
/// block its worker. A process after fork() has none of these threads. \throws Error(misuse) for
/// both
void check_caller(char const* operation);

}  // namespace copying
}  // namespace meshpost
