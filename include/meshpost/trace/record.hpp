#pragma once
#include "meshpost/device/detail/ring.hpp"

// Records that ranks write while they run, for the timeline, the timers and the log. The host's
// half is in trace/timeline.hpp and trace/log.hpp.

namespace meshpost {

/// One operation of one rank on the timeline. `end` is 0 if it never ended. Operation::kernel is
/// the rank itself, from its first to its last instruction.
struct TraceEvent {
  u64 begin, end;  ///< ns on the device's clock
  Operation operation;
  u32 peer;  ///< world rank; Note::no_rank if none
  u32 tag;
  u32 window;
  u64 bytes;
  char name[24];  ///< of a mark
};

/// Number of events that a rank had in a run, kept or not. A rank that has not begun in that run
/// still has its earlier value: the run's number tells.
struct alignas(8) TraceUse {
  u32 run;
  u32 events;
};

/// A device's timeline: `capacity` events for each rank; `events` null: none is recorded.
struct TraceBuffer {
  TraceEvent* events = nullptr;
  TraceUse* used = nullptr;  ///< of each rank
  u32 capacity = 0;
  u32 run = 0;  ///< the number in TraceUse

  /// Called when the rank begins, by one of its threads. So the host has nothing to clear.
  MESHPOST_FN void begin(u32 local_rank) const { used[local_rank] = {run, 0}; }
  /// A new event of this rank, null if it is not kept. One thread of the rank calls it.
  MESHPOST_FN TraceEvent* add(u32 local_rank) const {
    u32 const mine = used[local_rank].events++;
    return mine < capacity ? events + static_cast<u64>(local_rank) * capacity + mine : nullptr;
  }
};

/// A device's timers: up to `capacity` intervals for each rank.
struct TimerBuffer {
  u64* times = nullptr;  ///< [rank][interval][begin, end], ns; 0: not taken
  static constexpr u32 capacity = 64;

  MESHPOST_FN u64* interval(u32 local_rank, u32 interval) const {
    return times + (static_cast<u64>(local_rank) * capacity + interval) * 2;
  }
};

/// A line that a rank logs: the text with {} and the bits of its arguments. The host formats it.
struct LogRecord {
  static constexpr u32 most_arguments = 8;
  enum class Type : u8 { none, i64_, u64_, f64_, boolean, character, pointer };

  u32 ready;  ///< slot number + 1 once the record is whole
  u32 rank;
  Type types[most_arguments];
  u64 values[most_arguments];
  char text[176];

  MESHPOST_FN u32* flag() { return &ready; }
};
static_assert(sizeof(LogRecord) == 256);

/// A device's log: a ring that its ranks fill and the host empties while they run.
struct LogRing : detail::RingOfRanks<LogRecord, 1024> {};

namespace detail {

template <class T>
MESHPOST_FN void pack(LogRecord& record, u32 i, T value) {
  using Type = LogRecord::Type;
  if constexpr (same<T, bool>) {
    record.types[i] = Type::boolean;
    record.values[i] = value;
  } else if constexpr (same<T, char>) {
    record.types[i] = Type::character;
    record.values[i] = static_cast<u8>(value);
  } else if constexpr (same<T, float> || same<T, double>) {
    record.types[i] = Type::f64_;
    record.values[i] = bits_of(static_cast<double>(value));
  } else if constexpr (requires { *value; } || same<T, void*> || same<T, void const*>) {
    record.types[i] = Type::pointer;
    record.values[i] = reinterpret_cast<u64>(value);
  } else if constexpr (requires { value.value; }) {  // RankId, Tag, Bytes
    pack(record, i, value.value);
  } else {
    static_assert(static_cast<T>(1) == T(1), "log takes numbers, characters, pointers and ranks");
    record.types[i] = static_cast<T>(-1) < T(0) ? Type::i64_ : Type::u64_;
    record.values[i] = static_cast<u64>(value);
  }
}

}  // namespace detail
}  // namespace meshpost
