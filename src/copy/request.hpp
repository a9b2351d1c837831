#pragma once
#include <span>
#include <vector>

#include "copy/locate.hpp"
#include "copy/state.hpp"

namespace meshpost::copying {

/// One copy whose arguments are checked: rows (one, if it is plain) and where its ends live.
struct Request {
  PitchedCopy rows;
  Location to, from;

  bool plain() const { return rows.rows == 1 && rows.slices == 1; }
  u64 bytes() const { return rows.width * rows.rows * rows.slices; }
  /// Threads of the host make it.
  bool by_host() const { return to.on_host && from.on_host; }
  /// A device's stream makes it whole, without a thread of the host.
  bool by_engine() const { return !by_host() && to.for_engines() && from.for_engines(); }
};

/// Checks the arguments; at least one byte is to be copied. \throws Error(bad_argument)
Request check_request(PitchedCopy const& rows);

/// Checks the pitches of both sides alone. \throws Error(bad_argument)
void check_pitches(PitchedCopy const& rows);
/// Bytes from the first to behind the last of rows whose pitches are checked.
u64 extent_of(Pitch pitch, BlockShape const& shape);

/// The same rows as few as they can be: one, if they lie side by side in both places.
PitchedCopy merge_rows(PitchedCopy rows);

/// Begins a copy.
StatePtr start(Request const& request);
/// Begins copies that don't touch each other's bytes; their states in the same order.
std::vector<StatePtr> start_all(std::span<Request const> requests);
/// Makes a copy. Where the host does it, this thread does, and no other need be woken first.
void make(Request const& request);
/// Adds a copy of by_engine() to a stream of a device, or, of by_host(), if both its ends are
/// locked.
void queue(Request const& request, Stream& stream);

}  // namespace meshpost::copying
