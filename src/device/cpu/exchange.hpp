#pragma once
// Gathers of exchanges on CPU devices, by the stream's thread.
#include <cstring>

#include "meshpost/device/stream_exchange.hpp"

namespace meshpost::cpu {

template <class V>
void gather(StreamGather const& all, StreamPiece const& piece, char* target) {
  u64 const units = all.element / sizeof(V), count = piece.end - piece.begin;
  u64 const* const places = all.places + piece.begin;
  auto const* const from = static_cast<V const*>(all.source);
  auto* const to = reinterpret_cast<V*>(target);
  if (units == 1) {
    for (u64 i = 0; i < count; ++i) to[i] = from[places[i]];
    return;
  }
  for (u64 i = 0; i < count; ++i)
    for (u64 unit = 0; unit < units; ++unit) to[i * units + unit] = from[places[i] * units + unit];
}

/// `odd`: the step is.
inline void gather(StreamGather const& all, u32 odd) {
  for (u32 i = 0; i < all.pieces.count; ++i) {
    auto const& piece = all.pieces[i];
    char* const target = piece.target + odd * piece.half;
    if (piece.source != StreamPiece::listed)
      std::memcpy(target, static_cast<char const*>(all.source) + piece.source * all.element,
                  (piece.end - piece.begin) * all.element);
    else
      exchange::with_unit(all.unit, [&](auto unit) { gather<decltype(unit)>(all, piece, target); });
  }
}

}  // namespace meshpost::cpu
