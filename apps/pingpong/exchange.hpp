#pragma once
#include <meshpost/meshpost.hpp>

#include <memory>
#include <string>
#include <vector>

#include "measure.hpp"

namespace pingpong {

/// One series of round trips between two devices.
struct Task {
  Mode mode;
  meshpost::MemoryKind memory;  ///< device or pinned
  u64 bytes;                    ///< of a message
  u64 kernel_ns;                ///< that a kernel takes before each put; 0: no kernel
  u32 rounds;
};

/// Two devices that send a message to and fro: device 0 sends a message of its source, device 1
/// sends back what came. Messages of three rounds lie in slots of their own.
class Exchange {
 public:
  /// `largest`: bytes of the largest message. \throws Error(bad_argument) unless there are two
  /// devices in one process
  Exchange(meshpost::WorldOptions const& options, meshpost::Bytes largest);
  ~Exchange();

  meshpost::World const& world() const { return *world_; }
  /// \throws Error
  Took run(Task const& task);
  /// Fills the sources with random bytes and the inboxes with others, makes a round in each slot,
  /// and compares all bytes, also those around the messages. Returns the fault; empty if none.
  std::string check(Task const& task, u64 seed);

 private:
  using Byte = unsigned char;
  /// Inboxes, then sources, then the border behind the last one.
  struct Places {
    u64 bytes, pitch;
    explicit Places(u64 message) : bytes(message), pitch((message + 255) / 256 * 256 + 256) {}
    u64 inbox(u32 round) const { return round % slots * pitch; }
    u64 source(u32 round) const { return (slots + round % slots) * pitch; }
    u64 all() const { return 2 * slots * pitch; }
  };
  static constexpr u32 slots = 3;

  meshpost::Window<Byte> const& window(meshpost::MemoryKind memory) const;
  meshpost::RankId rank_of(u32 device) const { return {device * world_->ranks_per_device()}; }
  void warm_up();
  void play_host(Task const& task, u32 device);
  void play_stream(Task const& task, u32 device);
  Took run_kernel(Task const& task);

  std::vector<std::shared_ptr<meshpost::Device>> devices_;
  std::vector<meshpost::Allocation> pinned_;  // lives longer than the World, whose window it is
  std::unique_ptr<meshpost::World> world_;
  meshpost::Window<Byte> in_devices_, in_host_;
  std::vector<meshpost::Communicator> sides_;  // [i]: the first 2^i ranks of each device
  std::vector<meshpost::StreamEndpoint> ends_;
  Flag arrived_[2];
  Hosts hosts_{2};
};

/// Ranks of a device that share a message of this size in mode kernel.
u32 senders_of(meshpost::Bytes message, u32 ranks_per_device);

}  // namespace pingpong
