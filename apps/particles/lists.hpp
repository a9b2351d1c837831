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

/// A slot's particle, which all lanes of a warp have loaded at once on GPUs, each its own.
template <class Real>
struct Slot {
  Real x, y, vx, vy;
  u32 id;

  MESHPOST_FN static Slot of(Chunk<Real> const& chunk, u32 lane) {
#if defined(__CUDA_ARCH__)
    return {load_now(chunk.x + lane), load_now(chunk.y + lane), load_now(chunk.vx + lane),
            load_now(chunk.vy + lane), load_now(chunk.id + lane)};
#else
    return {chunk.x[lane], chunk.y[lane], chunk.vx[lane], chunk.vy[lane], chunk.id[lane]};
#endif
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

  MESHPOST_FN u32 chunks() const { return chunks_; }

 private:
  u32* words_;
  Chunk<Real>* slots_;
  u32 chunks_;
};

/// The bits of a list. On GPUs all lanes of a warp make one, and each loads the bits of a chunk. So
/// the headers of several lists are loaded at once, and then waited for.
template <class Real>
class Header {
 public:
  MESHPOST_FN explicit Header(List<Real> const& list) : list_(list) {
#if defined(__CUDA_ARCH__)
    u32 const lane = threadIdx.x % lanes, chunk = lane < list.chunks() ? lane : 0;
    ups_ = load_now(&list.ups(chunk));
    downs_ = load_now(&list.downs(chunk));
#endif
  }

  /// How many of the particles of the first `chunks` chunks went where. Called by: all lanes.
  struct Totals {
    u32 ups, downs;
  };
  MESHPOST_FN Totals totals(u32 chunks) const {
    u32 ups = 0, downs = 0, first = 0, stride = 1;
#if defined(__CUDA_ARCH__)
    u32 const lane = threadIdx.x % lanes;
    ups = lane < chunks ? count_bits(ups_) : 0;
    downs = lane < chunks ? count_bits(downs_) : 0;
    first = lane + lanes, stride = lanes;  // of a list with more chunks than lanes
#endif
    for (u32 c = first; c < chunks; c += stride) {
      ups += count_bits(list_.ups(c));
      downs += count_bits(list_.downs(c));
    }
    return {sum_of_lanes(ups), sum_of_lanes(downs)};
  }
  MESHPOST_FN Totals totals() const { return totals(list_.chunks()); }
  MESHPOST_FN u32 stays() const {
    auto const all = totals();
    return list_.count() - all.ups - all.downs;
  }

 private:
  List<Real> list_;
#if defined(__CUDA_ARCH__)
  u32 ups_, downs_;  // of chunk `lane`
#endif
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

  MESHPOST_FN Content(std::byte* data, u32 segments_, u32 chunks_)
      : segments(segments_), chunks(chunks_) {
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
