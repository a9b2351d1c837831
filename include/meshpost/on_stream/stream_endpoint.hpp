#pragma once
#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "meshpost/device/device.hpp"
#include "meshpost/rma/world.hpp"

namespace meshpost {

/// Notifications of one tag, for StreamEndpoint::wait.
struct Counts {
  Tag tag;
  u32 count = 1;
};

/// The first elements of `most`. How many, the stream reads at `count` when it gets there: no more
/// than there are. `count` is in memory of the stream's device, or in pinned memory; null: all.
template <class T>
struct CountedSource {
  std::span<T const> most;
  u64 const* count = nullptr;
};

namespace detail {
class EndpointState;

/// A put of a stream, without its types.
struct TypedPut {
  WindowInfo const& window;
  u64 element_bytes;
  RankId rank;
  u64 offset;
  void const* source;
  u64 count;
  u64 limit = ~u64{0};         ///< elements of the target
  u64 const* units = nullptr;  ///< CountedSource::count
};
}  // namespace detail

/// A stream as an endpoint of a World: it puts into windows, notifies, and waits for notifications,
/// in the order of its other work. The calls put operations on the stream, and return. On a GPU no
/// thread of the host takes part in them, if the target is in reach.
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
/// are dropped.
///
/// Graphs: they are launched into the endpoint's own stream, while the endpoint and the windows
/// live. No endpoint is destroyed while it is captured.
///
/// Calls come from one thread at a time; each endpoint may have another one. They are not allowed
/// inside a kernel or after fork(), nor of an endpoint that was moved from. A World that ends waits
/// for its streams.
class StreamEndpoint {
 public:
  /// A new stream on a device of this process, by its number in World::devices(). `name` is for
  /// messages.
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

  // Ranks are those of the world. `source` is memory of the stream's device, or pinned memory; on
  // CPU devices any. It must not change or be freed before the operation is over: when work
  // behind it begins, or synchronize() returns. Errors of all:
  // \throws Error(bad_argument) naming the value and its limit; Error(misuse);
  // Error(device_failed); and the error of an earlier wait (see above)

  /// Copies `source` to the beginning of `target`. A later notification of this stream delivers it.
  template <class T>
  void put(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source,
           std::source_location where = std::source_location::current()) {
    put(typed(target, source), where);
  }
  template <class T>
  void put(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source,
           std::source_location where = std::source_location::current()) {
    put(typed(target, source), where);
  }
  /// put(), then raises the counter for `tag` of the target's rank, in the target's window.
  template <class T>
  void put_notify(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source, Tag tag,
                  std::source_location where = std::source_location::current()) {
    put(typed(target, source), target.rank(), tag, where);
  }
  template <class T>
  void put_notify(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source, Tag tag,
                  std::source_location where = std::source_location::current()) {
    put(typed(target, source), target.rank(), tag, where);
  }
  /// put(), then raises the counter for `tag` of a stream, in the target's window. The stream is of
  /// the target's device.
  template <class T>
  void put_notify(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source,
                  StreamId notified, Tag tag,
                  std::source_location where = std::source_location::current()) {
    put(typed(target, source), notified, tag, where);
  }
  template <class T>
  void put_notify(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source,
                  StreamId notified, Tag tag,
                  std::source_location where = std::source_location::current()) {
    put(typed(target, source), notified, tag, where);
  }

  /// Raises a counter of a rank by one.
  template <class T>
  void notify(Window<T> const& window, RankId rank, Tag tag,
              std::source_location where = std::source_location::current()) {
    notify(window.info(), rank, tag, where);
  }
  /// Raises a counter of a stream by one.
  template <class T>
  void notify(Window<T> const& window, StreamId stream, Tag tag,
              std::source_location where = std::source_location::current()) {
    notify(window.info(), stream, tag, where);
  }
  /// Raises a counter of the host of a process by one, which waits with Window::wait.
  template <class T>
  void notify(Window<T> const& window, HostId host, Tag tag,
              std::source_location where = std::source_location::current()) {
    notify(window.info(), host, tag, where);
  }

  /// The stream's later work begins when `count` notifications with `tag` have come to this stream,
  /// which are then consumed. 0: at once; at most 2^30.
  template <class T>
  void wait(Window<T> const& window, Tag tag, u32 count = 1,
            std::source_location where = std::source_location::current()) {
    wait(window.info(), {{tag, count}}, where);
  }
  /// The same for several tags at once, at most 32 (AwaitedCounter::most). Counts of one tag add
  /// up.
  template <class T>
  void wait(Window<T> const& window, std::vector<Counts> const& awaited,
            std::source_location where = std::source_location::current()) {
    wait(window.info(), awaited, where);
  }

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

 private:
  template <class T>
  static detail::TypedPut typed(RemoteSpan<T> const& target, std::span<T const> source) {
    return {target.window(), sizeof(T),     target.rank(), target.offset(),
            source.data(),   source.size(), target.count()};
  }
  template <class T>
  static detail::TypedPut typed(RemoteSpan<T> const& target, CountedSource<T> const& source) {
    auto put = typed(target, source.most);
    put.units = source.count;
    return put;
  }
  void put(detail::TypedPut const& put, std::source_location where);
  void put(detail::TypedPut const& put, RankId rank, Tag tag, std::source_location where);
  void put(detail::TypedPut const& put, StreamId stream, Tag tag, std::source_location where);
  void notify(WindowInfo const& window, RankId rank, Tag tag, std::source_location where);
  void notify(WindowInfo const& window, StreamId stream, Tag tag, std::source_location where);
  void notify(WindowInfo const& window, HostId host, Tag tag, std::source_location where);
  void wait(WindowInfo const& window, std::vector<Counts> const& awaited,
            std::source_location where);

  std::shared_ptr<detail::EndpointState> state_;
};

}  // namespace meshpost
