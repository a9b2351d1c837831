#pragma once
#include <optional>
#include <string>
#include <variant>

#include "meshpost/on_stream/stream_endpoint.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// The endpoint that is notified.
using Notified = std::variant<std::monostate, RankId, StreamId, HostId>;

/// A message of a stream: bytes, a notification, or both.
struct StreamSend {
  WindowInfo const* window = nullptr;
  TypedPut const* put = nullptr;  ///< null: no bytes
  Notified notified{};
  Tag tag{};
};

/// Where a message of a stream goes, as its host carries it out: the target is out of reach of the
/// stream's device.
class FarTarget {
 public:
  FarTarget(WorldState& world, WindowInfo const& window) : world_(&world), window_(window) {}

  /// Writes bytes at an offset of the target. \throws Error(peer_lost, device_failed)
  void write(u64 offset, void const* source, u64 bytes) const;
  /// \throws likewise
  void notify() const;

  bool operator==(FarTarget const& other) const;

 private:
  friend class Destinations;
  WorldState* world_;
  WindowInfo window_;
  GlobalAddress address_{};
  Notified notified_{};
  Tag tag_{};
  u32 device_ = 0;        // of a rank that is notified
  via::Signal signal_{};  // its counter, as an offset
};

/// The same in reach of the device: `target`, `counter` and the counter's origin of a StreamPut.
struct Destination {
  StreamPut near{};
  std::optional<FarTarget> far{};
  std::string window{};        ///< its name
  bool touches_ranks = false;  ///< their memory or counters
  /// Runs that follow the stream (Launch::streams) follow this, too.
  bool before_runs = false;
};

/// Finds them, for a stream of an own device. \throws Error(bad_argument, misuse) naming the
/// operation
class Destinations {
 public:
  Destinations(WorldState& world, StreamId stream) : world_(world), stream_(stream) {}

  Destination of(std::string const& operation, StreamSend const& send) const;
  /// The words of counters of this stream.
  /// `name`: gets the window's name.
  AwaitedCounter awaited(std::string const& operation, WindowInfo const& window,
                         Counts const& counts, std::string& name) const;

 private:
  /// The operation and its window, for messages. Their text is made only if it is needed.
  struct Told {
    std::string const& operation;
    std::string const& window;
    std::string text() const;
  };
  void place(Told const& told, WindowRecord const& record, StreamSend const& send,
             Destination& found) const;
  void count(Told const& told, WindowRecord const& record, StreamSend const& send,
             Destination& found) const;
  u32 device_of(Told const& told, StreamSend const& send) const;
  u32 own() const { return stream_.device - world_.layout().first_device; }

  WorldState& world_;
  StreamId stream_;
};

}  // namespace meshpost::detail
