#pragma once
#include <string>
#include <vector>

#include "meshpost/device/stream_exchange.hpp"
#include "on_stream/destination.hpp"

// A device's end of an exchange on streams. The part array makes the exchange.

namespace meshpost::detail {

/// An end is made of this. Its lists are in the device's memory later, at ExchangeParts::table.
struct ExchangeParts {
  WindowInfo arrivals{};      ///< bytes; two halves. Its counters are those of the streams
  u64 half = 0;               ///< bytes
  u32 parts = 0;              ///< of the plan, which are devices
  char* outgoing = nullptr;   ///< for peers out of reach
  char const* own = nullptr;  ///< this device's arrivals
  u64* table = nullptr;       ///< in the device's memory
  u64 element = 1;            ///< bytes
  u64 alignment = 1;          ///< of an element
  StreamNumber number{};
  u64 room = 0;  ///< elements of the part's memory
  /// A piece for, or of, another device.
  struct Piece {
    StreamId peer{};
    u64 first = 0;  ///< number among all that this device sends, or receives
    u64 count = 0;  ///< elements
    u64 there = 0;  ///< sent: number of the first among those that the receiver receives
    u64 source = StreamPiece::listed;  ///< of those sent: StreamPiece::source
    bool both = false;                 ///< there is one in the other direction, too
  };
  std::vector<Piece> sends{}, receives{};
  // Places. `sent`: of the elements of all pieces that are not consecutive, by their numbers.
  std::vector<u64> sent{};
  u64 sent_count = 0;
  std::vector<u64> targets{}, begins{}, numbers{};
  u64 first_received = 0, received_count = 0;

  // Tags of `arrivals`: what comes from a device, and its credits.
  Tag tag_of(u32 device) const { return Tag{device}; }
  Tag credit_of(u32 device) const { return Tag{parts + device}; }
  /// Words of the table, at most.
  static u64 table_words(u64 entries, u64 sent, u64 received);
};

/// A stream's end of an exchange: all that an iteration needs was found before.
struct ExchangeEnd {
  WindowInfo window{};
  std::string name{};  ///< of the window
  StreamGather gather{};
  StreamScatter scatter{};
  std::vector<ResolvedCall> far_puts{}, far_credits{};
  std::string ways{};  ///< a line for each peer, for people
  u64 room = 0, alignment = 1;
  bool started = false;
  // Memory of the user that was checked last; the driver takes long to ask.
  void const* known_source = nullptr;
  void const* known_target = nullptr;
};

/// Memory of the user for a step, and its elements.
struct ExchangeMemory {
  void const* source;
  u64 source_count;
  void* target;
  u64 target_count;
};

}  // namespace meshpost::detail
