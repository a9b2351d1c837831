#pragma once
#include <functional>
#include <vector>

#include "meshpost/rma/world.hpp"

// Chunks of bytes from one process to another, in order. A channel is a ring of slots in the
// receiver's part of a window; the part is memory of the receiver's host. The sender stores a
// chunk, then its number in the slot. The receiver takes the chunks, and stores how many in the
// sender's part. Each word has one writer. The numbers wrap.

namespace meshpost::compat::mp {

/// Tells the receiver how to use a chunk.
struct ChunkHeader {
  enum Kind : u32 {
    message,
    put,
    get,   ///< asks for bytes of a window
    reply  ///< bytes that were asked for
  };
  Kind kind = message;
  u32 bytes = 0;   ///< of this chunk
  u64 total = 0;   ///< of the message, put or reply that it is a part of
  u64 offset = 0;  ///< of its bytes there
  u32 window = 0;
  u32 unused = 0;
  u64 displacement = 0;
  u64 request = 0;  ///< get, reply: the number of the asker's request
};

/// How a process's part of the window is divided: for each process and each lane, the channel that
/// it sends on, and a count of the chunks that it has taken.
struct ChannelShape {
  static constexpr u32 lanes = 2;  ///< replies have their own: no message is in front of them
  static constexpr u64 line = 64;

  u32 processes = 1;
  u32 slots = 64;      ///< a power of two
  u64 slot_bytes = 0;  ///< of a chunk

  /// A part takes some 32 MiB, or less.
  static ChannelShape of(u32 processes);

  u64 taken_at(u32 process, u32 lane) const { return channel(process, lane); }
  u64 slot_at(u32 process, u32 lane, u32 number) const {
    return channel(process, lane) + line + number % slots * slot();
  }
  u64 bytes() const { return channel(processes, 0); }

 private:
  u64 slot() const { return 2 * line + slot_bytes; }
  u64 channel(u32 process, u32 lane) const {
    return (u64{process} * lanes + lane) * (line + slots * slot());
  }
};

/// Another process's part: stored into directly, or by way of its host if it is out of reach.
class PeerPart {
 public:
  PeerPart(Window<std::byte> window, RankId rank, char* near)
      : window_(window), rank_(rank), near_(near) {}

  /// Where this process stores directly; null: write() does.
  char* near(u64 offset) const { return near_ ? near_ + offset : nullptr; }
  void write(u64 offset, void const* source, u64 bytes) const;
  /// Stores a word; a thread there that sees it sees all earlier writes.
  void publish(u64 offset, u32 value) const;

 private:
  Window<std::byte> window_;
  RankId rank_;
  char* near_;
};

/// The ends of the channels between a process, which is a rank of a World with a CPU device for
/// each rank, and all processes.
class Channels {
 public:
  /// `rank` is of this process. Its World must outlive this.
  Channels(Window<std::byte> const& window, ChannelShape const& shape, RankId rank);

  ChannelShape const& shape() const { return shape_; }
  u32 processes() const { return shape_.processes; }
  u32 own() const { return own_; }

  struct End {
    u32 process, lane;
  };
  /// Slots that are free for chunks to a process.
  u32 room(End const& to) const;
  /// Sends a chunk; there is room. `fill` stores its bytes.
  void send(End const& to, ChunkHeader const& header, std::function<void(char*)> const& fill);
  u32 sent(End const& to) const { return side(to).sent; }
  /// True if the receiver has taken chunk `number` of those sent, counted from 1.
  bool taken(End const& to, u32 number) const;

  struct Chunk {
    ChunkHeader header;
    char const* bytes;
  };
  /// The next chunk, if it has come.
  bool next(End const& from, Chunk& chunk) const;
  /// Gives its slot back.
  void take(End const& from);

 private:
  struct Side {
    u32 sent = 0, took = 0;
  };
  Side& side(End const& end) { return sides_[end.process * ChannelShape::lanes + end.lane]; }
  Side const& side(End const& end) const {
    return sides_[end.process * ChannelShape::lanes + end.lane];
  }
  u32 count_taken(End const& to) const;

  ChannelShape shape_;
  u32 own_;
  char* part_ = nullptr;
  std::vector<PeerPart> peers_;
  std::vector<Side> sides_;
};

}  // namespace meshpost::compat::mp
