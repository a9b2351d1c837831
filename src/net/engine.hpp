#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshpost/base/types.hpp"

// An engine moves bytes between processes that share no memory. Each engine has a folder of its own
// (ofi/). It is chosen at run time. It does not know ranks. Addresses and keys of other processes
// are opaque texts, which its caller exchanges.

namespace meshpost::net {

/// Memory of a peer that can be written to.
struct RemoteMemory {
  u64 base = 0;  ///< the provider's address of its beginning
  u64 key = 0;
};

/// The events that a poll finds. Called on the polling thread, never from within send() or write().
class Events {
 public:
  virtual ~Events() = default;
  /// A message, whole. `bytes` are valid during the call.
  virtual void on_message(u32 peer, std::span<char const> bytes) = 0;
  /// A write with `data` has arrived: all its bytes are in place.
  virtual void on_data(u32 peer, u32 data) = 0;
  /// The operation that was started with this cookie is done: its source may change.
  virtual void on_done(u64 cookie) = 0;
  /// Nothing more can be sent to this peer or comes from it. Once for each peer.
  virtual void on_lost(u32 peer, std::string const& why) = 0;
};

/// One endpoint of this process, connected to those of others. Nothing blocks. One thread at a
/// time.
///
/// Arrivals are not ordered: neither messages, nor writes, nor messages and writes.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;  ///< "ofi (tcp;ofi_rxm)"

  /// The text that others pass to connect().
  virtual std::string address() const = 0;
  /// Addresses by peer. Empty for this engine itself, and for peers that it does not talk to.
  /// Call it once.
  /// \throws Error(bad_environment)
  virtual void connect(std::vector<std::string> const& addresses) = 0;

  /// Largest message; at least 4 KiB.
  virtual Bytes most() const = 0;
  /// Starts to send header and payload as one message. The header is copied. False if there is no
  /// room now: poll, then try again.
  virtual bool send(u32 peer, std::span<char const> header, std::span<char const> payload,
                    u64 cookie) = 0;

  /// Lets peers write to this memory until the engine ends. The text is for import() there.
  /// \throws Error(bad_environment)
  virtual std::string expose(void* memory, Bytes size) = 0;
  /// True if the engine itself reads and writes memory of devices of that kind ("cuda").
  virtual bool reaches(std::string_view /*kind*/) const { return false; }
  /// As expose(), for memory of such a device. It may also be the source of writes that lie within
  /// one exposed range.
  /// \throws Error(bad_environment)
  virtual std::string expose_device(void* memory, Bytes size, std::string_view kind, u32 index);
  virtual RemoteMemory import(u32 peer, std::string const& exposed) = 0;
  /// Starts to write `source` at `offset` of a peer's memory. The peer is told `data` when all
  /// bytes are there. In memory of a device, its owner must then make the device see them
  /// (Device::see_writes). Any size. False as in send().
  virtual bool write(u32 peer, std::span<char const> source, RemoteMemory const& target, u64 offset,
                     u32 data, u64 cookie) = 0;

  /// Makes progress, and reports events. Returns true if there were any.
  virtual bool poll(Events& events) = 0;

  /// True if bytes arrive unchanged, because they cross no network.
  virtual bool keeps_bytes() const { return false; }
  /// True if traffic with other peers goes on after a peer was killed.
  virtual bool outlives_peers() const { return true; }

  /// A thread hangs in this engine, so the engine is not called again and never destroyed. Removes
  /// the things that it would leave on the host when the process ends. Any thread may call it,
  /// while the other one is in the engine.
  virtual void abandon() noexcept {}
};

/// Says if an engine is to reach memory of GPUs itself.
enum class Gpus {
  no,         ///< there are no GPUs, or their bytes are to pass through the host
  if_faster,  ///< if network cards do it, not if a library copies for them
  yes         ///< otherwise there is an error
};

using EngineFactory = std::function<std::unique_ptr<Engine>(std::string const& rest,
                                                            std::string const& bind, Gpus gpus)>;
/// For other libraries: adds engines with names "kind" or "kind:rest", from now on. Thread-safe.
void register_engine(std::string const& kind, EngineFactory factory);

/// Makes an engine by its name: "ofi", "ofi:tcp" (a provider), "" for the best one. With "direct:"
/// before it, it must reach memory of GPUs; with "staged:" it must not. `bind`: host or address
/// that the others reach this process by; empty: loopback.
/// \throws Error(bad_environment) that names the engines of this build
std::unique_ptr<Engine> make_engine(std::string const& name, std::string const& bind,
                                    Gpus gpus = Gpus::no);

}  // namespace meshpost::net
