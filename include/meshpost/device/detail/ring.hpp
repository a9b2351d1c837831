#pragma once
#include "meshpost/device/block.hpp"

// Rings of records between the ranks of a device and the host: requests and log lines go to the
// host, commands come from it.
//
// clang-format off
// Why the consumer of a record sees all of it, and what its producer did before:
//  1. Record n lies in slot n % slots, and its flag is n + 1 once it is whole. The producer stores
//     the flag last, with release at system scope; the consumer loads it with acquire. So the
//     consumer has the record, and what the producer's release is cumulative over.
//  2. Flags count on through all laps. So a slot that has not been written again has no flag that
//     anybody waits for, and nobody clears it. Numbers wrap; they are compared by differences.
//  3. A slot is written again only when its record was read: the consumer then stores how far it
//     has come (`tail`), with release; the producer acquires that before it writes. Where ranks
//     produce, they ask over the bus only when a value that one of them has kept on the device
//     (`seen`) says that there is no room: that was stored with release behind the acquire of
//     `tail`, and is acquired.
//  4. Many ranks that produce claim numbers by an add, so the order of records is that of the
//     claims, and records of one thread come in its program order. The host consumes alone.
//  5. Many ranks that consume take turns: who moves `claimed` on from `taken` has the next record
//     alone. It stores `taken` last; who takes the turn after that has acquired it.
// clang-format on

namespace meshpost::detail {

/// `Record` has u32* flag(). `records` null: there is no ring.
template <class Record, u32 slots>
struct Ring {
  static constexpr u32 capacity = slots;

  Record* records = nullptr;  ///< in memory of both
  u32* tail = nullptr;        ///< records that were consumed, as far as is told; in memory of both

  MESHPOST_FN Record& at(u32 number) const { return records[number % slots]; }
  MESHPOST_FN static u32 flag_of(u32 number) { return number + 1; }
  MESHPOST_FN bool is_whole(u32 number) const {
    return memory::load_acquire(at(number).flag()) == flag_of(number);
  }
  MESHPOST_FN void publish(u32 number) const {
    memory::store(at(number).flag(), flag_of(number), Order::system);
  }
  /// The host produces: how many records there is room for, when it has published so many.
  MESHPOST_FN u32 room(u32 published) const {
    return slots - (published - memory::load_acquire(tail));
  }
  /// All before that number have been consumed.
  MESHPOST_FN void tell(u32 number) const { memory::store(tail, number, Order::system); }
};

/// Ranks produce.
template <class Record, u32 slots>
struct RingOfRanks : Ring<Record, slots> {
  u32* head = nullptr;  ///< the next number, in the device's memory
  u32* seen = nullptr;  ///< a value of *tail; likewise

  /// The number of a slot that is free; by one thread. wait() is called while there is no room;
  /// false: it gives up, and nobody ever fills that slot.
  template <class Wait>
  MESHPOST_FN bool claim(u32& number, Wait&& wait) const {
    number = memory::fetch_add_device(head, 1);
    for (u32 known = memory::load_acquire(seen); number - known >= slots;) {
      if (!wait()) return false;
      known = memory::load_acquire(this->tail);
      memory::store(seen, known, Order::device);
    }
    return true;
  }
};

/// Ranks that consume take turns. In the device's memory.
struct RingTurns {
  u32 taken;    ///< consumed
  u32 claimed;  ///< the same, plus one while somebody consumes the next
  u32 told;     ///< value of Ring::tail
  u32 looking;  ///< 1 while a rank looks for the next record

  MESHPOST_FN bool claim(u32 number) {
    return memory::replace_device(&claimed, number, number + 1);
  }
  /// False: another rank looks. Only to keep loads off the bus: a GPU takes loads of the same word
  /// of the host one after the other, and 132 ranks that look would wait for each other. claim()
  /// alone decides who has a record.
  MESHPOST_FN bool begin_look() {
    return memory::load_relaxed(&looking) == 0 && memory::replace_device(&looking, 0, 1);
  }
  MESHPOST_FN void end_look() { memory::store_relaxed(&looking, 0); }
};

}  // namespace meshpost::detail
