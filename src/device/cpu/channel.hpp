#pragma once
// Messages between streams of CPU devices, by the stream's thread.
#include <algorithm>
#include <cstring>

#include "base/pauses.hpp"
#include "meshpost/device/stream_channel.hpp"

namespace meshpost::cpu {

/// A stream that waits for a chunk, and tells its host.
class ChunkWait {
 public:
  ChunkWait(StreamWords const& words, StreamChannel const& channel, StreamNote::Operation operation,
            u32 first)
      : words_(words), channel_(channel), operation_(operation), first_(first) {}

  /// Returns when `done`, for one of the message's chunks. False: the stream was poisoned.
  template <class Done>
  bool until(u32 chunk, u32 chunks, Done const& done) const {
    constexpr u32 long_wait = 64;  // looks, after which the host is told
    bool told = false;
    for (Pauses pauses; !done(); pauses.rest()) {
      if (memory::load_acquire(&words_.note->poisoned) != 0) {
        memory::store_relaxed(words_.ended, 1);
        tell(StreamNote::ended, chunk, chunks);
        return false;
      }
      if (pauses.looks() < long_wait) continue;
      tell(StreamNote::yes, chunk, chunks);
      told = true;
    }
    if (told) memory::store(&words_.note->waiting, u32{StreamNote::no}, Order::system);
    return true;
  }
  void tell(StreamNote::Waiting waiting, u32 chunk, u32 chunks) const {
    auto& note = *words_.note;
    memory::store_relaxed(&note.operation, operation_);
    memory::store_relaxed(&note.window, channel_.window);
    memory::store_relaxed(&note.tag, channel_.tag);
    memory::store_relaxed(&note.peer, channel_.peer);
    memory::store_relaxed(&note.come, chunk);
    memory::store_relaxed(&note.count, chunks);
    memory::store_relaxed(&note.consumed, first_);
    memory::store_relaxed(&note.all, memory::load_relaxed(words_.moved));
    memory::store(&note.waiting, u32{waiting}, Order::system);
  }

 private:
  StreamWords const& words_;
  StreamChannel const& channel_;
  StreamNote::Operation operation_;
  u32 first_;
};

inline u64 bytes_in(StreamChannel const& channel, u64 whole, u32 chunk) {
  return std::min(channel.slot_bytes, whole - chunk * channel.slot_bytes);
}
inline void has_moved(StreamWords const& words) {
  memory::store_relaxed(words.moved, memory::load_relaxed(words.moved) + 1);
}

/// write(number of a chunk, header, bytes, their count): writes a slot, and says that it is whole.
/// False: it could not.
template <class Write>
void send(StreamWords const& words, StreamChannel const& to, StreamPut const& put,
          Write const& write) {
  if (memory::load_relaxed(words.ended) != 0) return;
  u32 const first = memory::load_relaxed(to.number);
  u64 const whole = put.size();
  u32 const chunks = to.chunks(whole);
  ChunkWait const wait(words, to, StreamNote::send, first);
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    u32 const n = first + chunk;
    if (!wait.until(chunk, chunks, [&] { return to.is_free(n); })) return;
    if (!write(n, ChunkHeader{.flag = 0, .unused = 0, .whole = whole},
               static_cast<char const*>(put.source) + chunk * to.slot_bytes,
               bytes_in(to, whole, chunk)))
      return;
    memory::store_relaxed(to.number, n + 1);
    has_moved(words);
  }
}
inline void send(StreamWords const& words, StreamChannel const& to, StreamPut const& put) {
  send(words, to, put, [&](u32 n, ChunkHeader const& header, char const* source, u64 bytes) {
    if (bytes != 0) std::memcpy(to.bytes_of(n), source, bytes);
    to.header(n)->whole = header.whole;
    to.publish(n);
    return true;
  });
}

/// free(number of a chunk): tells the sender that it was taken. False: it could not.
template <class Free>
void receive(StreamWords const& words, StreamChannel const& from, StreamReceive const& into,
             Free const& free) {
  if (memory::load_relaxed(words.ended) != 0) return;
  u32 const first = memory::load_relaxed(from.number);
  u64 whole = into.bytes;
  ChunkWait const wait(words, from, StreamNote::receive, first);
  for (u32 chunk = 0; chunk < from.chunks(whole); ++chunk) {
    u32 const n = first + chunk;
    if (!wait.until(chunk, from.chunks(whole), [&] { return from.has_come(n); })) return;
    u64 const named = from.header(n)->whole;
    if (!into.fits(named)) {
      memory::store_relaxed(words.ended, 1);
      return report_misfit(words, from, named, into);
    }
    whole = named;
    if (into.count) *into.count = named / into.unit;
    if (u64 const bytes = bytes_in(from, whole, chunk); bytes != 0)
      std::memcpy(static_cast<char*>(into.target) + chunk * from.slot_bytes, from.bytes_of(n),
                  bytes);
    if (!free(n)) return;
    memory::store_relaxed(from.number, n + 1);
    has_moved(words);
  }
}
inline void receive(StreamWords const& words, StreamChannel const& from,
                    StreamReceive const& into) {
  receive(words, from, into, [&](u32 n) {
    from.free(n);
    return true;
  });
}

}  // namespace meshpost::cpu
