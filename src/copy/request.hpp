#pragma once
#include <span>
#include <vector>

#include "copy/locate.hpp"
#include "copy/state.hpp"

namespace meshpost::copying {

/// One copy whose arguments are checked: its rows (one, if it is plain) and the memory of its ends.
struct Request {
  PitchedCopy rows;
  Location to, from;

  bool plain() const { return rows.rows == 1 && rows.slices == 1; }
  u64 bytes() const { return rows.width * rows.rows * rows.slices; }
  /// True if threads of the host make it.
  bool by_host() const { return to.on_host && from.on_host; }
  /// True if a device's stream can make all of it, without a thread of the host.
  bool by_engine() const { return !by_host() && to.for_engines() && from.for_engines(); }
};

/// Checks the arguments; at least one byte must be copied. \throws Error(bad_argument)
Request check_request(PitchedCopy const& rows);

/// Checks only the pitches of both sides. \throws Error(bad_argument)
void check_pitches(PitchedCopy const& rows);
/// Bytes from the beginning of the first row to the end of the last. The pitches have been checked.
u64 extent_of(Pitch pitch, BlockShape const& shape);

/// The same bytes in as few rows as possible: one, if they lie side by side in both places.
PitchedCopy merge_rows(PitchedCopy rows);

/// Begins a copy.
StatePtr start(Request const& request);
/// Begins copies that don't touch each other's bytes; their states in the same order.
std::vector<StatePtr> start_all(std::span<Request const> requests);
/// Makes a copy. If the host makes it, this thread does, so that no other need be woken first.
void make(Request const& request);
/// Adds a copy to a stream. It is one of by_engine(), to a stream of a device, or one of by_host()
/// whose ends are both page-locked.
void queue(Request const& request, Stream& stream);

}  // namespace meshpost::copying
