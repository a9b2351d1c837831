#pragma once
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#include "meshpost/device/device.hpp"
#include "meshpost/on_stream/stream_calls.hpp"

namespace meshpost {

namespace detail {
class EndpointState;
struct PreparedCall;
}  // namespace detail

/// An operation of a stream that was checked and prepared once, and may be posted many times
/// (StreamEndpoint::prepare). It may outlive the endpoint, but not be posted then.
class StreamRequest {
 public:
  /// Puts the operation on the stream, and returns. As a call of the endpoint itself; what the
  /// operation names must still be there. \throws Error: as that call
  void post(std::source_location where = std::source_location::current());

 private:
  friend class StreamPreparation;
  explicit StreamRequest(std::shared_ptr<detail::PreparedCall> call) : call_(std::move(call)) {}
  std::shared_ptr<detail::PreparedCall> call_;
};

/// Calls of StreamEndpoint::prepare().
class StreamPreparation : public StreamCalls<StreamPreparation, StreamRequest> {
  friend StreamCalls;
  friend class StreamEndpoint;
  explicit StreamPreparation(std::shared_ptr<detail::EndpointState> const& state) : state_(state) {}
  StreamRequest take(detail::StreamCall const& call);
  std::shared_ptr<detail::EndpointState> state_;
};

/// Calls of StreamEndpoint::explain().
class StreamExplanation : public StreamCalls<StreamExplanation, std::string> {
  friend StreamCalls;
  friend class StreamEndpoint;
  explicit StreamExplanation(std::shared_ptr<detail::EndpointState> const& state) : state_(state) {}
  std::string take(detail::StreamCall const& call);
  std::shared_ptr<detail::EndpointState> state_;
};

/// A stream as an endpoint of a World: it puts into windows, notifies, waits for notifications, and
/// exchanges messages with other streams, in the order of its other work (StreamCalls). The calls
/// put operations on the stream, and return. On a GPU no thread of the host takes part in them, if
/// the target is in reach.
///
/// Ranks, hosts and other streams notify it by its id(); it notifies any of them. Its counters are
/// in the windows of the World. They are its own, and stay as they are when a run ends.
///
/// Order: operations of a stream happen one behind the other, with its kernels and copies. A
/// notification of a stream delivers its earlier puts to that device, and all that its earlier work
/// has stored. A wait of a stream delivers as a rank's does, to the stream's later work.
///
/// Runs: put(), put_notify(), and notify() of a rank begin after the runs that were launched before
/// the call. If all of these have Launch::with_host, they begin at once; so they do on a GPU while
/// the stream is captured into a CUDA graph. Notifications alone then order what the stream and
/// ranks do. A run that is launched later and reads or consumes what they bring must follow the
/// stream (Launch::streams) or have Launch::with_host. So must the runs before that one: each would
/// take the notification as one that nobody consumed. After a run that failed, notifications of
/// ranks that were queued before its error was thrown may be dropped.
///
/// Failures: a wait ends if nothing comes for the World's deadline, if a process of the job is
/// lost, or if a run fails meanwhile. Then all later operations of this endpoint do nothing (but
/// bytes of a put of more than 32 MiB may arrive). The stream's other work, and runs that follow
/// it, go on. Each call throws the error and queues nothing, until synchronize() has thrown it.
/// After that the endpoint may be used again, and all notifications that have come to it by then
/// are dropped. The error of a deadline, and of a run, names all streams of this process that wait.
///
/// Graphs: they are launched into the endpoint's own stream, while the endpoint and the windows
/// live. No endpoint is destroyed while it is captured.
///
/// Calls come from one thread at a time; each endpoint may have another one. They are not allowed
/// inside a kernel or after fork(), nor of an endpoint that was moved from. A World that ends waits
/// for its streams.
class StreamEndpoint : public StreamCalls<StreamEndpoint, void> {
 public:
  /// A new stream on a device of this process, by its number in World::devices(). `name` is for
  /// messages. On a GPU it has the highest priority: its operations need not wait until kernels of
  /// other streams leave the GPU.
  /// \throws Error(bad_argument) if there is no such device, or the device has
  /// StreamId::most streams already
  explicit StreamEndpoint(World const& world, u32 device = 0, std::string name = {});
  /// Around a stream of the user of that device (cudaStream_t). It must live as long as this.
  /// \throws Error(bad_argument) likewise, on CPU devices, and if the stream is another device's
  StreamEndpoint(World const& world, u32 device, void* native, std::string name = {});
  /// Waits for the stream's work, which may take as long as its waits do. An error that no call has
  /// thrown is reported as a warning. Notifications that have come by then are dropped; another
  /// endpoint may get the number.
  ~StreamEndpoint();
  StreamEndpoint(StreamEndpoint&&) noexcept;
  StreamEndpoint& operator=(StreamEndpoint&&) = delete;
  StreamEndpoint(StreamEndpoint const&) = delete;
  StreamEndpoint& operator=(StreamEndpoint const&) = delete;

  /// The number is the smallest that no other stream of the device has. So another process knows it
  /// if the streams of a device are made in a fixed order. It may notify the stream before that is
  /// made: the notification counts.
  StreamId id() const;
  /// For other work, and for Launch::streams.
  Stream& stream() const;
  /// The cudaStream_t; null on CPU devices.
  void* native() const { return stream().native(); }

  /// Takes the same calls, which then give a StreamRequest: checked once, posted many times.
  ///
  ///     auto request = stream.prepare().put_notify(box.at(RankId{1}), source, other, Tag{0});
  ///     for (int step = 0; step < steps; ++step) request.post();
  StreamPreparation prepare() const { return StreamPreparation(state_); }
  /// Takes the same calls, which then say by what mechanism they would be carried out.
  StreamExplanation explain() const { return StreamExplanation(state_); }

  /// Returns when all work of the stream so far is done, and its messages to targets out of reach
  /// are there. \throws Error: see above
  void synchronize(std::source_location where = std::source_location::current());

  /// The user's own work on the stream: kernels, copies. While the object lives, what is put on the
  /// stream belongs to the task. The host's timeline (WorldOptions::trace_host) then shows when the
  /// host launched it, and when the stream began and ended it. Without such a timeline it does
  /// nothing. It ends before its endpoint, on the same thread.
  class Task {
   public:
    ~Task();
    Task(Task&&) = delete;
    Task(Task const&) = delete;
    Task& operator=(Task&&) = delete;
    Task& operator=(Task const&) = delete;

   private:
    friend class StreamEndpoint;
    Task(detail::EndpointState& state, std::string_view name, std::source_location where);
    detail::EndpointState& state_;
    std::string name_;
    std::source_location where_;
    u64 begin_ = 0;       // 0: nobody observes
    u64* end_ = nullptr;  // for the stream's clock
  };
  [[nodiscard]] Task task(std::string_view name,
                          std::source_location where = std::source_location::current());

  // Of the library. Null if it was moved from.
  std::shared_ptr<detail::EndpointState> const& state() const { return state_; }

 private:
  friend StreamCalls;
  void take(detail::StreamCall const& call);
  std::shared_ptr<detail::EndpointState> state_;
};

}  // namespace meshpost
