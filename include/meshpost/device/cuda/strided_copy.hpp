#pragma once
#include "meshpost/device/strided_copy.hpp"

namespace meshpost::memory {

/// A thread's position among the units of a strided copy: the units of a run, and the three loops.
/// Threads step by their number. Carrying over is cheaper than a division for each unit.
class StridedPlace {
 public:
  MESHPOST_FN StridedPlace(StridedCopy const& copy, u32 unit, u32 thread, u32 threads)
      : counts_{copy.run / unit, copy.loop[0].count, copy.loop[1].count, copy.loop[2].count},
        targets_{unit, copy.loop[0].target, copy.loop[1].target, copy.loop[2].target},
        sources_{unit, copy.loop[0].source, copy.loop[1].source, copy.loop[2].source} {
#pragma unroll
    for (u32 d = 0; d < 4; ++d) {
      index_[d] = digit(thread, counts_[d]);
      steps_[d] = digit(threads, counts_[d]);
    }
  }
  MESHPOST_FN u64 target() const { return at(targets_); }
  MESHPOST_FN u64 source() const { return at(sources_); }
  MESHPOST_FN void step() {
    u64 carry = 0;
#pragma unroll
    for (u32 d = 0; d < 4; ++d) {
      index_[d] += steps_[d] + carry;
      carry = index_[d] >= counts_[d];
      if (carry != 0) index_[d] -= counts_[d];
    }
  }

 private:
  MESHPOST_FN static u32 digit(u32& rest, u64 count) {
    if (rest < count) {
      u32 const all = rest;
      rest = 0;
      return all;
    }
    u32 const digit = rest % static_cast<u32>(count);
    rest /= static_cast<u32>(count);
    return digit;
  }
  MESHPOST_FN u64 at(u64 const (&strides)[4]) const {
    return index_[0] * strides[0] + index_[1] * strides[1] + index_[2] * strides[2] +
           index_[3] * strides[3];
  }

  u64 counts_[4], targets_[4], sources_[4], index_[4], steps_[4];
};

/// Units of V, four independent loads in flight for each thread; consecutive threads store
/// consecutive units.
template <class V>
MESHPOST_COLD inline void copy_strided(StridedCopy const& copy, u32 thread, u32 threads) {
  constexpr u32 flight = 4;
  StridedPlace place(copy, sizeof(V), thread, threads);
  u64 const units = copy.bytes() / sizeof(V);
  for (u64 i = thread; i < units; i += u64{flight} * threads) {
    V unit[flight];
    V* to[flight];
#pragma unroll
    for (u32 k = 0; k < flight; ++k)
      if (i + u64{k} * threads < units) {
        to[k] = reinterpret_cast<V*>(copy.target + place.target());
        unit[k] = *reinterpret_cast<V const*>(copy.source + place.source());
        place.step();
      }
#pragma unroll
    for (u32 k = 0; k < flight; ++k)
      if (i + u64{k} * threads < units) *to[k] = unit[k];
  }
}

/// This thread's share of a strided copy that is not empty.
MESHPOST_COLD inline void copy(StridedCopy const& copy, u32 thread, u32 threads) {
  if (copy.run >= 128ull * threads)  // enough for the eight loads in flight of a contiguous copy
    return copy.each_run([&](char* target, char const* source) {
      copy_any(target, source, copy.run, thread, threads);
    });
  u64 low = reinterpret_cast<u64>(copy.target) | reinterpret_cast<u64>(copy.source) | copy.run;
  for (auto const& loop : copy.loop) low |= loop.target | loop.source;
  if (low % 16 == 0) copy_strided<uint4>(copy, thread, threads);
  else if (low % 8 == 0) copy_strided<u64>(copy, thread, threads);
  else if (low % 4 == 0) copy_strided<u32>(copy, thread, threads);
  else if (low % 2 == 0) copy_strided<unsigned short>(copy, thread, threads);
  else copy_strided<u8>(copy, thread, threads);
}

}  // namespace meshpost::memory
