#pragma once
#include <cstddef>
#include <string>

#include "meshpost/rma/world.hpp"

namespace meshpost {

/// Memory of a MessageWindow. For each pair of streams and each tag there is a ring of slots, in
/// the memory of the receiver's device. So a device needs about streams x devices x streams x tags
/// x slots x slot_bytes bytes.
struct MessageWindowOptions {
  u32 streams = 1;  ///< of each device, from number 0 on; at most StreamId::most
  u32 tags = 1;     ///< at most 1024
  u32 slots = 128;  ///< of a ring; a power of two, at most 1024
  /// A multiple of 128, at most 262,016. A message that is longer takes several slots.
  u64 slot_bytes = u64{32} << 10;
  std::string name{};  ///< for messages
};

/// Messages between streams, where the receiver says where they go: StreamEndpoint::send and
/// receive. Messages from one stream to another with the same tag are received in the order in
/// which they were sent. A stream that sends waits only while the ring is full.
///
/// If an operation of a stream has failed, a message may be half there. So a message window that
/// this stream has used is then refused there: free it, and make a new one. Graphs that use it must
/// not be replayed then; nothing sees that.
class MessageWindow {
 public:
  MessageWindow() = default;
  /// Collective in a job, with equal options. \throws Error(bad_argument) for options that can't
  /// be, Error(out_of_memory)
  explicit MessageWindow(World& world, MessageWindowOptions const& options = {});

  /// Its memory, for World::free; it is there until then, or until the World ends.
  Window<std::byte> const& window() const { return window_; }

  // How its memory is divided, on each device. `mine`: the number of a stream of that device.
  // `channel`: messages from, or to, the other stream.
  struct Layout {
    u32 devices = 0, streams = 0, tags = 0, slots = 0;
    u64 slot_bytes = 0;

    u32 channels() const { return devices * streams * tags; }  ///< of a stream
    u32 channel(StreamId peer, Tag tag) const {
      return (peer.device * streams + peer.number) * tags + tag.value;
    }
    u64 words_at(u32 mine, u32 channel) const;  ///< how many were taken, were sent, freed[]
    u64 slots_at(u32 mine, u32 channel) const;
    u64 bytes() const;
  };
  Layout const& layout() const { return layout_; }

 private:
  Window<std::byte> window_;
  Layout layout_;
};

}  // namespace meshpost
