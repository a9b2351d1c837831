#pragma once
// How particles lie in memory.
#include "lanes.hpp"

namespace particles {

/// 32 slots of a list.
template <class Real>
struct alignas(16) Chunk {
  Real x[lanes], y[lanes], vx[lanes], vy[lanes];
  u32 id[lanes];
};

/// One of them.
template <class Real>
struct Slot {
  Real x, y, vx, vy;
  u32 id;

  MESHPOST_FN static Slot of(Chunk<Real> const& chunk, u32 lane) {
    return {chunk.x[lane], chunk.y[lane], chunk.vx[lane], chunk.vy[lane], chunk.id[lane]};
  }
};

/// The particles that were in a segment before the last step, in their order there, with the state
/// after it. Bit i of `ups` and `downs` says that slot i of a chunk went up or down a segment; its
/// y counts from the edge of that one. In memory: a word `count`, three of padding, two words `ups`
/// and `downs` for each chunk, padding to 16 bytes, then the chunks. So a list with few particles
/// is the beginning of a full one.
template <class Real>
class List {
 public:
  MESHPOST_FN List(std::byte* data, u32 chunks)
      : words_(reinterpret_cast<u32*>(data)),
        slots_(reinterpret_cast<Chunk<Real>*>(data + header(chunks))),
        chunks_(chunks) {}
  MESHPOST_FN static u64 header(u32 chunks) { return 16 + (u64{chunks} + 1) / 2 * 16; }
  /// Bytes of a list with room for so many chunks.
  MESHPOST_FN static u64 size(u32 chunks) {
    return header(chunks) + chunks * u64{sizeof(Chunk<Real>)};
  }

  MESHPOST_FN u32& count() const { return words_[0]; }
  MESHPOST_FN u32& ups(u32 chunk) const { return words_[4 + 2 * chunk]; }
  MESHPOST_FN u32& downs(u32 chunk) const { return words_[5 + 2 * chunk]; }
  MESHPOST_FN Chunk<Real>& slots(u32 chunk) const { return slots_[chunk]; }
  MESHPOST_FN u32 used_chunks() const {
    u32 const used = (count() + lanes - 1) / lanes;
    return used < chunks_ ? used : chunks_;
  }
  /// Bytes up to the last chunk that is used.
  MESHPOST_FN u64 used_bytes() const {
    return header(chunks_) + used_chunks() * u64{sizeof(Chunk<Real>)};
  }

  /// How many of the particles of the first `chunks` chunks went where.
  struct Totals {
    u32 ups, downs;
  };
  MESHPOST_FN Totals totals(u32 chunks) const {
    Totals all{0, 0};
    for (u32 c = 0; c < chunks; ++c) {
      all.ups += count_bits(ups(c));
      all.downs += count_bits(downs(c));
    }
    return all;
  }
  MESHPOST_FN Totals totals() const { return totals(chunks_); }

 private:
  u32* words_;
  Chunk<Real>* slots_;
  u32 chunks_;
};

/// Lists of consecutive segments, one behind the other.
template <class Real>
struct Lists {
  std::byte* data;
  u32 chunks;  ///< of each

  MESHPOST_FN List<Real> operator[](u32 place) const {
    return {data + place * List<Real>::size(chunks), chunks};
  }
};

/// The particles of consecutive segments at the beginning of a step: [segment][slot].
template <class Real>
struct Content {
  Real *x, *y, *vx, *vy;
  u32 *id, *count;
  u32 segments, chunks;

  MESHPOST_FN Content(std::byte* data, u32 segments, u32 chunks)
      : segments(segments), chunks(chunks) {
    u64 const slots = u64{segments} * chunks * lanes;
    x = reinterpret_cast<Real*>(data);
    y = x + slots;
    vx = y + slots;
    vy = vx + slots;
    id = reinterpret_cast<u32*>(vy + slots);
    count = id + slots;
  }
  MESHPOST_FN static u64 size(u32 segments, u32 chunks) {
    return segments * (u64{chunks} * lanes * (4 * sizeof(Real) + sizeof(u32)) + sizeof(u32));
  }
  MESHPOST_FN u32 capacity() const { return chunks * lanes; }
};

/// Why a run has no result. Each thread that can find a reason has a record of its own, and keeps
/// the first.
struct Trouble {
  enum What : u32 { none, went_far, overflow };
  u32 what, step;
  u32 segment;
  u32 who;      ///< the particle, or how many particles there are
  double much;  ///< how far it went

  MESHPOST_FN void note(Trouble const& other) {
    if (what == none) *this = other;
  }
};

}  // namespace particles
