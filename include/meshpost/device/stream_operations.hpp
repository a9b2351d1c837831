#pragma once
#include "meshpost/base/fn.hpp"
#include "meshpost/base/types.hpp"

// Operations of a stream on counters, as a kind of device carries them out (Stream::put, await and
// post). The part on_stream makes these values.

namespace meshpost {

/// A stream that waits tells the host what it waits for, and the host may end the wait. In memory
/// of both.
struct StreamNote {
  enum Waiting : u32 {
    no,
    yes,   ///< it has waited for some time, for what is named here
    ended  ///< that wait has ended because of `poisoned`
  };
  enum Operation : u32 {
    wait,
    send,
    receive,
    credit,  ///< of an exchange: the receiver has taken the step before the last one
    arrival  ///< of an exchange: the sender's elements of this step
  };

  u32 poisoned;  ///< by the host. 1: waits end at once, and later operations do nothing
  // By the stream:
  u32 waiting;
  u32 operation;
  u32 window;  ///< its number
  u32 tag;
  u32 peer;      ///< not of a wait: the other stream, device * StreamId::most + number
  u32 count;     ///< notifications, or chunks of a message
  u32 come;      ///< of `count`; of a message: the chunk that is awaited, 0 if none has come
  u32 consumed;  ///< from this counter before, or chunks before, so that two waits differ
  u32 all;       ///< sum of what has come of all that it waits for
  /// A message of another size has come, which ends the stream. The host alone clears it.
  struct Misfit {
    u32 found;
    u32 window, tag, peer;
    u64 bytes, room;  ///< of the message, of the target
    u64 unit;         ///< bytes of an element, if the receiver counts them; otherwise 0
  } misfit;
};

/// Memory of a stream that raises and awaits counters.
struct StreamWords {
  StreamNote* note = nullptr;
  // In the device's memory:
  u32* ended = nullptr;   ///< 1: a wait has found `poisoned`, or a message did not fit
  u32* copied = nullptr;  ///< blocks of an operation that have done their shares
  u32* moved = nullptr;   ///< chunks of messages, ever
  static constexpr u64 words = 3;
};

/// Copies bytes, then raises a counter. Either may be missing.
struct StreamPut {
  void* target = nullptr;
  void const* source = nullptr;
  u64 bytes = 0;
  /// If not null: when the stream gets there, it reads here how many units of `unit` bytes it
  /// copies, at most `bytes`. In memory of the device.
  u64 const* units = nullptr;
  u64 unit = 0;
  /// Out of reach only. If not null: when the stream gets there, it reads a number here. If that is
  /// odd, the target is `half` bytes further.
  u32 const* step = nullptr;
  u64 half = 0;
  u32* counter = nullptr;      ///< null: none
  u32* origin_word = nullptr;  ///< for the counter's last raiser; null: there is none
  u32 origin = 0;

  /// When the stream gets there.
  MESHPOST_FN u64 size() const {
    if (!units) return bytes;
    u64 const most = bytes / unit;
    return (*units < most ? *units : most) * unit;
  }
  MESHPOST_FN u64 skipped() const { return step ? (*step % 2) * half : 0; }
};

/// The mechanism of a put, for people.
struct StreamWay {
  enum By : u32 { thread, kernel, copy_engine } by = thread;
  u32 blocks = 0;      ///< of the kernel
  bool early = false;  ///< it may be resident before the work in front of it is over
};

/// Counts that a stream awaits and consumes: what was raised, less what was consumed before. Only
/// the stream itself writes `consumed`.
struct AwaitedCounter {
  static constexpr u32 most = 32;  ///< that a stream awaits at once

  u32 const* raised = nullptr;          ///< by devices, which add
  u32 const* raised_by_host = nullptr;  ///< pinned; only the stream's host stores here
  u32* consumed = nullptr;
  u32 count = 0;
  // For the note:
  u32 window = 0, tag = 0;
  u32 operation = StreamNote::wait, peer = 0;
};

/// A message that the host of a stream's device carries out. Longer ones follow each other.
struct StreamMessage {
  static constexpr u64 most_bytes = u64{256} << 10;

  u32 flag = 0;       ///< its number, plus one, once it is whole
  u32 operation = 0;  ///< its sender's number for it
  u64 skipped = 0;    ///< bytes of the target that the put leaves out at its beginning
  u64 offset = 0;     ///< of these bytes behind them
  u64 bytes = 0;      ///< of these
  u64 whole = 0;      ///< where the last bytes end: behind them comes the notification
};

/// The ring of a stream's messages, in pinned memory. Only the stream fills it, in its order.
struct StreamRing {
  static constexpr u32 slots = 8;

  StreamMessage* messages = nullptr;  ///< one a slot
  char* bytes = nullptr;              ///< StreamMessage::most_bytes for each
  u32 const* taken = nullptr;         ///< messages that the host has carried out
  u32* posted = nullptr;              ///< messages, in the device's memory

  MESHPOST_FN char* bytes_of(u32 number) const {
    return bytes + number % slots * StreamMessage::most_bytes;
  }
};

}  // namespace meshpost
