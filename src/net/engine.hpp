#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/types.hpp"

// How bytes cross between processes that share no memory. An engine is a folder of its own (ofi/);
// which one is used is chosen at run time. It knows nothing of ranks: addresses and keys of others
// are opaque texts that its caller exchanges.

namespace meshpost::net {

/// Memory of a peer that may be written to.
struct RemoteMemory {
  u64 base = 0;  ///< what the provider calls its beginning
  u64 key = 0;
};

/// What a poll finds. Called on the polling thread, never from within send() or write().
class Events {
 public:
  virtual ~Events() = default;
  /// A message, whole. `bytes` are valid during the call.
  virtual void on_message(u32 peer, std::span<char const> bytes) = 0;
  /// A write with `data` has arrived: all its bytes are in place.
  virtual void on_data(u32 peer, u32 data) = 0;
  /// What was started with this cookie is done: its source may change.
  virtual void on_done(u64 cookie) = 0;
  /// Nothing more can be sent to or comes from this peer. Once for each.
  virtual void on_lost(u32 peer, std::string const& why) = 0;
};

/// One endpoint of this process, connected to those of others. Nothing blocks. One thread at a
/// time.
///
/// Arrivals are not ordered: neither messages among themselves, nor writes, nor one with the other.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;  ///< "ofi (tcp;ofi_rxm)"

  /// What others connect() to.
  virtual std::string address() const = 0;
  /// By peer; an empty text for oneself and those that are not talked to. Once.
  /// \throws Error(bad_environment)
  virtual void connect(std::vector<std::string> const& addresses) = 0;

  /// Largest message; at least 4 KiB.
  virtual Bytes most() const = 0;
  /// Starts to send header and payload as one message. The header is copied. False: there is no
  /// room now; poll, then try again.
  virtual bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
                    u64 cookie) = 0;

  /// Lets peers write to this memory until the engine ends. The text is for import() there.
  /// \throws Error(bad_environment)
  virtual std::string expose(void* memory, Bytes size) = 0;
  /// Whether it reads and writes memory of devices of that kind ("cuda") itself.
  virtual bool reaches(std::string_view /*kind*/) const { return false; }
  /// As expose(), for memory of such a device. Writes may come out of it, too, where they lie
  /// within what was exposed at once.
  /// \throws Error(bad_environment)
  virtual std::string expose_device(void* memory, Bytes size, std::string_view kind, u32 index);
  virtual RemoteMemory import(u32 peer, std::string const& exposed) = 0;
  /// Starts to write `source` at `offset` of a peer's memory; the peer is told `data` when all
  /// bytes are there: in memory of a device, when its owner has seen to it that the device sees
  /// them (Device::see_writes). Any size. False as send().
  virtual bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                     u32 data, u64 cookie) = 0;

  /// Gets on, and tells what has happened. Whether anything had.
  virtual bool poll(Events& events) = 0;

  /// Whether bytes come as they were sent, because no network has them on its way.
  virtual bool keeps_bytes() const { return false; }
  /// Whether calls come back, and what goes to and from others gets on, when a peer was killed.
  virtual bool outlives_peers() const { return true; }

  /// A thread hangs in this engine, so it is called no more, and never destroyed: takes away what
  /// it would leave on the host when the process ends. Any thread, while that one is in it.
  virtual void abandon() noexcept {}
};

/// Whether an engine is to reach memory of GPUs itself.
enum class Gpus {
  no,         ///< there are none, or their bytes are to pass through the host
  if_faster,  ///< where network cards do it, not where a library copies for them
  yes         ///< or there is an error
};

using EngineFactory = std::function<std::unique_ptr<Engine>(std::string const& rest,
                                                            std::string const& bind, Gpus gpus)>;
/// For libraries beside this one: engines called "kind" or "kind:rest", from now on. Thread-safe.
void register_engine(std::string const& kind, EngineFactory factory);

/// An engine by its name: "ofi", "ofi:tcp" (a provider), "" for the best there is. "direct:" before
/// it: it must reach memory of GPUs; "staged:": it must not.
/// `bind`: host or address that the others reach this process by; empty: loopback.
/// \throws Error(bad_environment) naming those that this build has
std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind,
                                    Gpus gpus = Gpus::no);

}  // namespace meshpost::net
