#pragma once
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "meshpost/array/plan.hpp"
#include "meshpost/device/stream_exchange.hpp"
#include "meshpost/on_stream/stream_endpoint.hpp"

namespace meshpost {

namespace detail {

class StreamExchangeState;

/// A StreamExchange without its type.
class StreamExchangeBase {
 public:
  struct Element {
    u64 bytes = 1, alignment = 1;
    StreamNumber number = StreamNumber::none;
  };
  using Streams = std::vector<std::reference_wrapper<StreamEndpoint const>>;

  StreamExchangeBase() = default;
  StreamExchangeBase(World& world, Plan const& plan, Element const& element, Streams const& streams,
                     std::string const& name, std::source_location where);
  void start(u32 device, void const* source, u64 count, std::source_location where) const;
  void finish(u32 device, void* target, u64 count, StreamCombine combine,
              std::source_location where) const;
  struct Source {
    void const* data;
    u64 count;
  };
  struct Target {
    void* data;
    u64 count;
  };
  void all(std::vector<Source> const& sources, std::vector<Target> const& targets,
           StreamCombine combine, std::source_location where) const;
  u64 size(u32 device) const;
  std::string explain(u32 device) const;
  void free(World& world) const;

 private:
  StreamExchangeState& state(char const* operation) const;
  std::shared_ptr<StreamExchangeState> state_;
};

/// Other formats, such as those of 2 bytes, can only be replaced.
constexpr StreamNumber floating_number(u64 bytes) {
  using enum StreamNumber;
  return bytes == 4 ? float32 : bytes == 8 ? float64 : none;
}

template <class T>
constexpr StreamNumber stream_number() {
  using enum StreamNumber;
  constexpr u32 size = sizeof(T);
  if constexpr (!std::is_arithmetic_v<T> || std::is_same_v<T, bool> || size > 8) return none;
  else if constexpr (std::is_floating_point_v<T>) return floating_number(size);
  else if constexpr (std::is_signed_v<T>)
    return size == 1 ? int8 : size == 2 ? int16 : size == 4 ? int32 : int64;
  else return size == 1 ? uint8 : size == 2 ? uint16 : size == 4 ? uint32 : uint64;
}

}  // namespace detail

/// A plan that streams carry out. Part p of the plan is the World's device p, which takes part with
/// a StreamEndpoint.
///
///     StreamExchange<double> halo(world, plan, {streams.begin(), streams.end()});
///     for (...) {
///       for (u32 d = 0; d < devices; ++d) {
///         halo.start(d, x[d]);   // the device's elements, then its halo
///         ...                    // kernels on the stream that need no halo
///         halo.finish(d, x[d]);  // later work of the stream finds the halo of this step
///       }
///     }
///
/// Both calls put operations on the stream of a device, and return. The streams of all devices, in
/// all processes, start and finish in turn, equally often. `device` is a number in
/// World::devices(). Several exchanges may be in flight: make several of these by the same plan.
/// Its memory is allocated once, and all addresses are found then. On GPUs in reach of each other
/// no thread of the host takes part.
///
/// Runs: start() begins after the runs launched before the call, as StreamEndpoint::put does. Runs
/// that are launched later must follow the stream (Launch::streams).
///
/// Graphs: start() and finish() may be captured, together, any number of times. A graph may be
/// replayed while the exchange and its streams live. Between replays the calls may be made, too.
///
/// Failures are those of the streams (StreamEndpoint): the next call throws the error. Then a step
/// may be half done. So a stream that has failed refuses the exchange afterwards, also if it has
/// not started a step yet. End it with free_exchange(), and make a new one. Graphs that use it must
/// not be replayed then; nothing sees that.
///
/// A handle: copies name the same exchange. Calls for one device come from one thread at a time;
/// those for several devices may come from several threads.
template <class T>
class StreamExchange {
  static_assert(std::is_trivially_copyable_v<T>, "exchanges copy the bytes of elements");

 public:
  using Combine = StreamCombine;

  StreamExchange() = default;
  /// `streams`: of each device of this process, in the order of World::devices(). Collective, as
  /// World::window. \throws Error(bad_argument) if the plan's parts are not the devices of the
  /// World, or a stream is not of its device and World, in all processes; Error(misuse) if
  /// processes give different plans or types; as World::window
  StreamExchange(World& world, Plan const& plan,
                 std::vector<std::reference_wrapper<StreamEndpoint const>> const& streams,
                 std::string const& name = "exchange",
                 std::source_location where = std::source_location::current())
      : base_(world, plan, {sizeof(T), alignof(T), detail::stream_number<T>()}, streams, name,
              where) {}

  /// Sends what other parts need, behind the stream's earlier work. `source` has room for the
  /// plan's part, in memory of the device. It must not change before work behind start() begins.
  /// An array that was given in the step before is not looked at again: it must still be there. So
  /// give no array that was freed.
  /// \throws Error(bad_argument) naming what does not fit; Error(misuse) if finish() of the step
  /// before is missing, or this stream has failed before; as calls of a StreamEndpoint
  void start(u32 device, std::span<T const> source,
             std::source_location where = std::source_location::current()) const {
    base_.start(device, source.data(), source.size(), where);
  }
  /// The same; the caller knows that there is room.
  void start(u32 device, T const* source,
             std::source_location where = std::source_location::current()) const {
    base_.start(device, source, ~u64{0}, where);
  }

  /// The stream's later work begins when the elements of other parts are there, at their places in
  /// `target`: after Plan::from_indices() and from_pattern() in the halo. `target` may be another
  /// array than the source; its own elements stay as they are.
  ///
  /// `combine` is for reversed plans, where an element may come from several parts: for numbers,
  /// target = target + come (integers wrap), or the smaller or larger one. They are combined one
  /// after the other, in the order of the parts. So the result does not depend on time.
  /// \throws as start(); Error(misuse) without start() before; Error(bad_argument) for types that
  /// are no numbers, unless they are replaced
  void finish(u32 device, std::span<T> target, Combine combine = Combine::replace,
              std::source_location where = std::source_location::current()) const {
    base_.finish(device, target.data(), target.size(), combine, where);
  }
  void finish(u32 device, T* target, Combine combine = Combine::replace,
              std::source_location where = std::source_location::current()) const {
    base_.finish(device, target, ~u64{0}, combine, where);
  }

  /// A step of all devices of this process, for programs that use no streams: starts and finishes
  /// it, and returns when it is done. \throws what start(), finish() and
  /// StreamEndpoint::synchronize() throw
  void exchange(std::vector<std::span<T const>> const& sources,
                std::vector<std::span<T>> const& targets, Combine combine = Combine::replace,
                std::source_location where = std::source_location::current()) const {
    std::vector<detail::StreamExchangeBase::Source> from;
    std::vector<detail::StreamExchangeBase::Target> to;
    for (auto const& one : sources) from.push_back({one.data(), one.size()});
    for (auto const& one : targets) to.push_back({one.data(), one.size()});
    base_.all(from, to, combine, where);
  }
  /// The same in place: halos are behind the elements that others need.
  void exchange(std::vector<std::span<T>> const& arrays,
                std::source_location where = std::source_location::current()) const {
    exchange({arrays.begin(), arrays.end()}, arrays, Combine::replace, where);
  }

  /// Elements of the memory of a device's part: its own, and its halo.
  u64 size(u32 device) const { return base_.size(device); }

  /// For a device of this process: how it carries out a step, and for each peer by what mechanism
  /// elements come and go.
  std::string explain(u32 device) const { return base_.explain(device); }

 private:
  template <class U>
  friend void free_exchange(World& world, StreamExchange<U> const& exchange);
  detail::StreamExchangeBase base_;
};

/// Ends an exchange, behind the work of all streams of this process. Collective, as World::free.
/// \throws Error(misuse) if a stream that takes part is captured
template <class T>
void free_exchange(World& world, StreamExchange<T> const& exchange) {
  exchange.base_.free(world);
}

}  // namespace meshpost
