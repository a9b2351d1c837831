#pragma once
#include <cstring>

#include "meshpost/device/strided_copy.hpp"

namespace meshpost::memory {

/// The turns of one loop. If the compiler knows `size`, each turn is a load and a store.
template <u64 size>
inline void copy_runs(char* target, char const* source, StridedCopy::Loop const& loop) {
  for (u64 i = 0; i < loop.count; ++i)
    std::memcpy(target + i * loop.target, source + i * loop.source, size);
}

/// This thread's share of a strided copy that is not empty: whole inner loops. Threads of a rank
/// share a core, so one thread may have all of them.
MESHPOST_FN inline void copy(StridedCopy const& copy, u32 thread, u32 threads) {
  auto const& [inner, middle, outer] = copy.loop;
  for (u64 turn = thread; turn < middle.count * outer.count; turn += threads) {
    u64 const j = turn % middle.count, k = turn / middle.count;
    char* const target = copy.target + j * middle.target + k * outer.target;
    char const* const source = copy.source + j * middle.source + k * outer.source;
    switch (copy.run) {
      case 1: copy_runs<1>(target, source, inner); break;
      case 2: copy_runs<2>(target, source, inner); break;
      case 4: copy_runs<4>(target, source, inner); break;
      case 8: copy_runs<8>(target, source, inner); break;
      case 16: copy_runs<16>(target, source, inner); break;
      default:
        for (u64 i = 0; i < inner.count; ++i)
          std::memcpy(target + i * inner.target, source + i * inner.source, copy.run);
    }
  }
}

}  // namespace meshpost::memory
