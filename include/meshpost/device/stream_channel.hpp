#pragma once
#include "meshpost/device/block.hpp"
#include "meshpost/device/stream_operations.hpp"

// Messages from a stream to another one (Stream::send, Stream::receive). The part on_stream makes
// these values. src/device/cuda/channel_kernels.cpp and src/device/cpu/channel.hpp carry them out.
//
// clang-format off
// A message travels in chunks, through a ring of slots in the receiver's memory. Chunk n of a
// channel uses slot n % slots. Sender and receiver count chunks on their own, each in its device's
// memory. So nothing depends on numbers that a host knows, and a captured graph may be replayed.
//  1. The sender writes slot n % slots when chunk n - slots was taken out of it: the receiver then
//     stores freed[slot] = n - slot, behind its loads of the bytes (release), and the sender
//     acquires it. (n is the number of the next chunk in that slot. freed[] is 0 at first, which
//     allows the first `slots` chunks.)
//  2. The sender stores the bytes, the header, and then the flag n + 1 with release at system
//     scope. The receiver acquires the flag. A flag of an older chunk differs, because numbers
//     count on; they wrap after 2^32 chunks, when all others have long been written over.
//  3. Each block of a kernel carries whole chunks, and signals them alone. It waits for a block of
//     its own grid only if the message has more chunks than the ring and the receiver has one block
//     (with a count), which takes chunks in their order: that block began before, since blocks
//     begin in the order of their numbers. The last block to finish stores the number of the next
//     chunk. Later work of the stream sees it.
// Out of reach, the sender's host writes a slot and raises a counter of the receiver's stream; the
// receiver's host raises one of the sender's for each chunk taken. Chunks then arrive in order, so
// the two counts stand for flags and freed[].
// clang-format on

namespace meshpost {

/// In front of the bytes of a slot.
struct ChunkHeader {
  static constexpr u64 pitch = 128;  ///< bytes from here to those of the slot

  u32 flag;  ///< number of the chunk, plus one, once the slot is whole
  u32 unused;
  u64 whole;  ///< bytes of the whole message
};

/// One end of a channel.
struct StreamChannel {
  u32* number = nullptr;  ///< chunks sent, or taken, by this end; in its device's memory
  /// The receiver's. Null for a sender out of reach: slot_at() is then an offset.
  char* slots = nullptr;
  u32* freed = nullptr;  ///< a word a slot, in the sender's memory; null: out of reach
  // Out of reach, what has come: chunks for the receiver, permissions for the sender.
  u32 const* come = nullptr;          ///< raised by devices
  u32 const* come_by_host = nullptr;  ///< pinned
  u32 slot_count = 1;
  u64 slot_bytes = 0;
  u32 window = 0, tag = 0, peer = 0;  ///< for the note

  MESHPOST_FN u64 slot_at(u32 n) const {
    return n % slot_count * (ChunkHeader::pitch + slot_bytes);
  }
  MESHPOST_FN ChunkHeader* header(u32 n) const {
    return reinterpret_cast<ChunkHeader*>(slots + slot_at(n));
  }
  MESHPOST_FN char* bytes_of(u32 n) const { return slots + slot_at(n) + ChunkHeader::pitch; }
  MESHPOST_FN u32 chunks(u64 bytes) const {
    return bytes == 0 ? 1 : static_cast<u32>((bytes + slot_bytes - 1) / slot_bytes);
  }
  MESHPOST_FN u32 has_come_to() const {
    return memory::load_acquire(come) + memory::load_acquire(come_by_host);
  }
  /// The sender may write chunk n.
  MESHPOST_FN bool is_free(u32 n) const {
    if (!freed) return static_cast<i32>(n - has_come_to()) < static_cast<i32>(slot_count);
    u32 const slot = n % slot_count;
    return memory::load_acquire(freed + slot) + slot == n;
  }
  /// The receiver may read chunk n.
  MESHPOST_FN bool has_come(u32 n) const {
    if (!freed) return static_cast<i32>(has_come_to() - n) > 0;
    return memory::load_acquire(&header(n)->flag) == n + 1;
  }
  /// The receiver: chunk n has come, if it was taken since or not.
  MESHPOST_FN bool had_come(u32 n) const {
    u32 const last = freed ? memory::load_relaxed(&header(n)->flag) : has_come_to();
    return static_cast<i32>(last - n) > 0;
  }
  /// By one thread, behind all stores of the chunk.
  MESHPOST_FN void publish(u32 n) const { memory::store(&header(n)->flag, n + 1, Order::system); }
  /// By one thread, behind all loads of the chunk.
  MESHPOST_FN void free(u32 n) const {
    u32 const slot = n % slot_count;
    memory::store(freed + slot, n + slot_count - slot, Order::system);
  }
};

/// Where a message goes.
struct StreamReceive {
  void* target = nullptr;
  u64 bytes = 0;  ///< that it must have; at most, if there is `count`
  u64 unit = 1;
  u64* count = nullptr;  ///< gets how many units have come; in memory of the device, or pinned

  /// Of a message of `whole` bytes.
  MESHPOST_FN bool fits(u64 whole) const {
    return count ? whole <= bytes && whole % unit == 0 : whole == bytes;
  }
};

/// By one thread that has found a message which does not fit.
MESHPOST_FN inline void report_misfit(StreamWords const& words, StreamChannel const& from,
                                      u64 whole, StreamReceive const& into) {
  auto& misfit = words.note->misfit;
  memory::store_relaxed(&misfit.window, from.window);
  memory::store_relaxed(&misfit.tag, from.tag);
  memory::store_relaxed(&misfit.peer, from.peer);
  memory::store(&misfit.bytes, whole, Order::none);
  memory::store(&misfit.room, into.bytes, Order::none);
  memory::store(&misfit.unit, into.count ? into.unit : u64{0}, Order::none);
  memory::store(&misfit.found, u32{1}, Order::system);
}

/// For an end of a channel that is out of reach: its messages to its host.
struct StreamPost {
  StreamRing ring;
  u32 operation = 0;
};

}  // namespace meshpost
