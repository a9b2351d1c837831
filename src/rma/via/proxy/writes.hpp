#pragma once
#include <optional>
#include <vector>

#include "net/channel.hpp"
#include "rma/via/proxy/outgoing.hpp"
#include "rma/via/proxy/own_devices.hpp"
#include "rma/via/proxy/remote_heap.hpp"
#include "rma/via/proxy/staging.hpp"
#include "rma/via/proxy/undelivered.hpp"
#include "rma/world_memory.hpp"

namespace meshpost::detail {

/// Decides when and where the engine reads and writes memory itself (writes.cpp). One thread at a
/// time.
class Writes : WorldMemory {
 public:
  Writes(WorldMemory const& memory, OwnDevices const& own, net::Channel& channel);
  /// Collective, once.
  void join();
  /// Makes the growth of the heap writable. Collective.
  void follow_heap() { remote_heap_.follow(channel_.engine()); }
  /// Nothing of earlier runs changes windows any more.
  void begin_run();

  // -- at the sender
  /// The way of the next bytes.
  struct Way {
    enum class By : u32 { message, write, later } by = By::message;
    RemoteHeap::Target target{};
    u64 bytes = 0;
    bool to_slot = false;
  };
  Way way_of(u32 process, Outgoing const& out) const;
  /// The next message to be sent must be the one of this write. False: the channel has no room now.
  bool begin(u32 process, OutgoingPtr const& out, Way const& way);
  /// Where the engine can read the source in the own device's memory, in which it outlives ranks.
  /// For devices in the host's memory only if the source does not fit into a message.
  struct Source {
    char const* memory;
    std::optional<u32> device;
  };
  std::optional<Source> in_place(u32 own, char const* source, u64 bytes) const;
  u64 most_in_message() const;
  void has_sent(u32 process, u32 sequence, WireMessage const& wire);
  /// Adds to a message what it also tells.
  void tell(u32 process, WireMessage& wire);
  void has_told(u32 process, WireMessage const& wire) { staging_.told(process, wire.freed); }
  bool has_news(u32 process) const { return staging_.news(process); }

  // -- at the receiver
  /// Takes what a message tells. Returns its bytes, if they don't lie in a window already.
  Payload take(u32 process, WireMessage const& wire, std::string_view bytes);
  void heard(u32 process, u32 before) {
    peers_of_net_[process].undelivered.delivered_before(before);
  }

 private:
  struct Peer {
    Undelivered undelivered;
    // The same for bytes that may still come into windows that the engine writes to, but not the
    // host.
    Undelivered incomplete;
    u32 completed = 0;  // messages from it before this one change nothing any more
  };
  u64 readable(Outgoing const& out) const;
  Way way_to_slot(u32 process, u64 left) const;
  u32 completed(u32 process);

  OwnDevices const& own_;
  net::Channel& channel_;
  Staging staging_;
  RemoteHeap remote_heap_;
  bool reaches_devices_ = false;    // own ones whose memory the host can't load and store
  std::vector<Peer> peers_of_net_;  // by process
};

}  // namespace meshpost::detail
