#pragma once
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "meshpost/on_stream/message_window.hpp"

namespace meshpost {

/// Notifications of one tag, for a wait of a stream.
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

/// The endpoint that is notified.
using Notified = std::variant<std::monostate, RankId, StreamId, HostId>;

/// A call of StreamCalls, without its types.
struct StreamCall {
  enum Verb : u32 { put, put_notify, notify, wait, send, receive } verb;
  WindowInfo window{};
  Notified notified{};
  Tag tag{};
  std::vector<Counts> awaited{};
  // A put, or a message:
  u64 element_bytes = 1;
  RankId rank{};
  u64 offset = 0;
  void const* source = nullptr;
  u64 count = 0;
  u64 limit = ~u64{0};         ///< elements of the target
  u64 const* units = nullptr;  ///< CountedSource::count
  // A message:
  MessageWindow::Layout messages{};
  StreamId peer{};
  void* target = nullptr;
  u64* received = nullptr;
  std::source_location where{};  ///< the user's line

  bool puts() const { return verb == put || verb == put_notify; }
};

}  // namespace detail

/// The operations of a stream. `Result` depends on who takes the call (`Taker::take`): a
/// StreamEndpoint carries it out (void); StreamEndpoint::prepare() keeps it for later
/// (StreamRequest); StreamEndpoint::explain() says how it would be carried out (std::string).
///
/// Ranks are those of the world. `source` is memory of the stream's device, or pinned memory; on
/// CPU devices any. It must not change or be freed before the operation is over: when work behind
/// it begins, or StreamEndpoint::synchronize() returns. Errors of all:
/// \throws Error(bad_argument) naming the value and its limit; Error(misuse);
/// Error(device_failed); and the error of an earlier wait (StreamEndpoint)
template <class Taker, class Result>
class StreamCalls {
  using Call = detail::StreamCall;

 public:
  /// Copies `source` to the beginning of `target`. A later notification of this stream delivers it.
  template <class T>
  Result put(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source,
             std::source_location where = std::source_location::current()) {
    return take(put_of(Call::put, target, source), where);
  }
  template <class T>
  Result put(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source,
             std::source_location where = std::source_location::current()) {
    return take(put_of(Call::put, target, source), where);
  }
  /// put(), then raises the counter for `tag` of the target's rank, in the target's window.
  template <class T>
  Result put_notify(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source, Tag tag,
                    std::source_location where = std::source_location::current()) {
    return take(notifying(put_of(Call::put_notify, target, source), target.rank(), tag), where);
  }
  template <class T>
  Result put_notify(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source,
                    Tag tag, std::source_location where = std::source_location::current()) {
    return take(notifying(put_of(Call::put_notify, target, source), target.rank(), tag), where);
  }
  /// put(), then raises the counter for `tag` of a stream, in the target's window. The stream is of
  /// the target's device.
  template <class T>
  Result put_notify(RemoteSpan<T> const& target, std::span<NonDeduced<T> const> source,
                    StreamId notified, Tag tag,
                    std::source_location where = std::source_location::current()) {
    return take(notifying(put_of(Call::put_notify, target, source), notified, tag), where);
  }
  template <class T>
  Result put_notify(RemoteSpan<T> const& target, CountedSource<NonDeduced<T>> const& source,
                    StreamId notified, Tag tag,
                    std::source_location where = std::source_location::current()) {
    return take(notifying(put_of(Call::put_notify, target, source), notified, tag), where);
  }

  /// Raises a counter of a rank by one.
  template <class T>
  Result notify(Window<T> const& window, RankId rank, Tag tag,
                std::source_location where = std::source_location::current()) {
    return take(notifying(call(Call::notify, window), rank, tag), where);
  }
  /// Raises a counter of a stream by one.
  template <class T>
  Result notify(Window<T> const& window, StreamId stream, Tag tag,
                std::source_location where = std::source_location::current()) {
    return take(notifying(call(Call::notify, window), stream, tag), where);
  }
  /// Raises a counter of the host of a process by one, which waits with Window::wait.
  template <class T>
  Result notify(Window<T> const& window, HostId host, Tag tag,
                std::source_location where = std::source_location::current()) {
    return take(notifying(call(Call::notify, window), host, tag), where);
  }

  /// The stream's later work begins when `count` notifications with `tag` have come to this stream,
  /// which are then consumed. 0: at once; at most 2^30.
  template <class T>
  Result wait(Window<T> const& window, Tag tag, u32 count = 1,
              std::source_location where = std::source_location::current()) {
    return wait(window, std::vector<Counts>{{tag, count}}, where);
  }
  /// The same for several tags at once, at most 32 (AwaitedCounter::most). Counts of one tag add
  /// up.
  template <class T>
  Result wait(Window<T> const& window, std::vector<Counts> const& awaited,
              std::source_location where = std::source_location::current()) {
    auto wait = call(Call::wait, window);
    wait.awaited = awaited;
    return take(std::move(wait), where);
  }

  /// Sends a message to another stream, which receives it by this tag. It waits on the device while
  /// the message window has no room for that stream and tag. Neither the host nor other streams
  /// wait then.
  template <class T>
  Result send(MessageWindow const& messages, StreamId to, std::span<T> source, Tag tag,
              std::source_location where = std::source_location::current()) {
    auto message = message_of(Call::send, messages, to, tag, source);
    message.source = source.data();
    return take(std::move(message), where);
  }
  template <class T>
  Result send(MessageWindow const& messages, StreamId to, CountedSource<T> const& source, Tag tag,
              std::source_location where = std::source_location::current()) {
    auto message = message_of(Call::send, messages, to, tag, source.most);
    message.source = source.most.data(), message.units = source.count;
    return take(std::move(message), where);
  }
  /// Waits for the next message with this tag from another stream, and copies it to `target`. It
  /// must have that size. With `count` (memory of the stream's device, or pinned) it may be
  /// shorter, and *count gets its number of elements; one thread block then copies. A message of
  /// another size ends this stream's operations with an error.
  template <class T>
  Result receive(MessageWindow const& messages, StreamId from, std::span<T> target, Tag tag,
                 u64* count = nullptr,
                 std::source_location where = std::source_location::current()) {
    auto message = message_of(Call::receive, messages, from, tag, target);
    message.target = target.data(), message.received = count;
    return take(std::move(message), where);
  }

 private:
  friend Taker;
  StreamCalls() = default;
  Result take(Call call, std::source_location where) {
    call.where = where;
    return static_cast<Taker*>(this)->take(call);
  }
  template <class T>
  static Call call(Call::Verb verb, Window<T> const& window) {
    return {.verb = verb, .window = window.info()};
  }
  static Call notifying(Call call, detail::Notified notified, Tag tag) {
    call.notified = notified, call.tag = tag;
    return call;
  }
  template <class T>
  static Call put_of(Call::Verb verb, RemoteSpan<T> const& target, std::span<T const> source) {
    return {.verb = verb,
            .window = target.window(),
            .element_bytes = sizeof(T),
            .rank = target.rank(),
            .offset = target.offset(),
            .source = source.data(),
            .count = source.size(),
            .limit = target.count()};
  }
  template <class T>
  static Call put_of(Call::Verb verb, RemoteSpan<T> const& target, CountedSource<T> const& source) {
    auto put = put_of(verb, target, source.most);
    put.units = source.count;
    return put;
  }
  template <class T>
  static Call message_of(Call::Verb verb, MessageWindow const& messages, StreamId peer, Tag tag,
                         std::span<T> memory) {
    static_assert(std::is_trivially_copyable_v<T>, "messages hold bytes that may be copied");
    return {.verb = verb,
            .window = messages.window().info(),
            .tag = tag,
            .element_bytes = sizeof(T),
            .count = memory.size(),
            .messages = messages.layout(),
            .peer = peer};
  }
};

}  // namespace meshpost
