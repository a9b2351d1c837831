#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "meshpost/device/stream_channel.hpp"
#include "meshpost/on_stream/stream_calls.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {

/// Both numbers of a stream in one, as StreamNote::peer has them.
inline u32 word_of(StreamId stream) { return stream.device * StreamId::most + stream.number; }
inline StreamId stream_of_word(u32 word) { return {word / StreamId::most, word % StreamId::most}; }

/// Where a message of a stream goes, as its host carries it out: the target is out of reach of the
/// stream's device.
class FarTarget {
 public:
  FarTarget(WorldState& world, WindowInfo const& window) : world_(&world), window_(window) {}

  /// Writes bytes at an offset of the target, or begins it, if another process does it: then
  /// FarMemory::end_write() or drop() must follow. The bytes may change at once.
  /// \throws Error(peer_lost, device_failed)
  std::optional<Questions::Begun> write(u64 offset, void const* source, u64 bytes) const;
  FarMemory const& far_memory() const { return world_->host().far(); }
  /// \throws likewise
  void notify() const;
  /// Both, by one message if another process has the target.
  void write_and_notify(u64 offset, void const* source, u64 bytes) const;

  bool operator==(FarTarget const& other) const;

 private:
  friend class Destinations;
  void notify(BytesBefore const& before) const;

  WorldState* world_;
  WindowInfo window_;
  GlobalAddress address_{};
  Notified notified_{};
  Tag tag_{};
  u32 device_ = 0;        // of a rank that is notified
  via::Signal signal_{};  // its counter, as an offset
};

/// A call of a stream with the addresses that it needs. The call's verb says which members count.
struct ResolvedCall {
  StreamPut put{};  ///< also a message's source
  std::vector<AwaitedCounter> awaited{};
  StreamChannel channel{};
  StreamReceive into{};
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

  /// put, put_notify, notify
  ResolvedCall of(std::string const& operation, StreamCall const& call) const;
  ResolvedCall awaited(std::string const& operation, StreamCall const& call) const;
  /// send, receive
  ResolvedCall message(std::string const& operation, StreamCall const& call) const;

  struct Sender {
    StreamId stream;
    Tag tag;
  };
  /// In the message window of that call: who has sent what the stream has not received. A few of
  /// them. Nothing of the stream is in progress. \throws also Error(device_failed)
  std::vector<Sender> unreceived_messages(StreamCall const& call) const;

 private:
  /// The operation and its window, for messages. Their text is made only if it is needed.
  struct Told {
    std::string const& operation;
    std::string const& window;
    std::string text() const;
  };
  void place(Told const& told, WindowRecord const& record, StreamCall const& call,
             ResolvedCall& found) const;
  void count(Told const& told, WindowRecord const& record, StreamCall const& call,
             ResolvedCall& found) const;
  AwaitedCounter counter(WindowRecord const& record, Counts const& counts) const;
  void check_message(Told const& told, StreamCall const& call) const;
  FarTarget far_end(WindowRecord const& record, StreamCall const& call) const;
  u32 device_of(Told const& told, StreamCall const& call) const;
  u32 own() const { return stream_.device - world_.layout().first_device; }

  WorldState& world_;
  StreamId stream_;
};

}  // namespace meshpost::detail
