#pragma once
#include "meshpost/device/block.hpp"

// Vectors combined element by element, in their order.

namespace meshpost::detail {

MESHPOST_FN constexpr u64 smaller(u64 a, u64 b) { return a < b ? a : b; }

/// The share of each of `sharers` in so many bytes: a multiple of a cache line, so that copies use
/// the widest units.
MESHPOST_FN constexpr u64 share_of(u64 bytes, u32 sharers) {
  return ((bytes + sharers - 1) / sharers + 127) & ~127ull;
}

/// `count` vectors, `pitch` bytes apart. Number `own`, if there is one, is at `mine` instead.
template <class T>
struct Vectors {
  static constexpr u32 none = ~u32{0};
  char const* first;
  u64 pitch;
  u32 count;
  u32 own = none;
  T const* mine = nullptr;

  MESHPOST_FN T const* operator[](u32 k) const {
    return k == own ? mine : reinterpret_cast<T const*>(first + k * pitch);
  }
};

/// The places of a combined vector: `count` of them, the first at `first`, `stride` bytes apart.
template <class T>
struct Targets {
  T* first;
  u64 stride = 0;
  u32 count = 1;

  MESHPOST_FN void store(u64 i, T const& value) const {
    auto* at = reinterpret_cast<char*>(first + i);
    MESHPOST_ROLLED
    for (u32 k = 0; k < count; ++k, at += stride) *reinterpret_cast<T*>(at) = value;
  }
};

// fold() combines elements [begin, end) of vectors; the first of them goes to `to.first`. By all
// threads. Out of line, so that a kernel has it once for a type, and not in the kernel's registers.

#if defined(__CUDA_ARCH__)

/// Combines vectors [k, k + vectors), those that exist, with the sum of the vectors before. Of each
/// it combines elements i, i + threads and so on, those among the `here` elements from i on.
/// `whole`: all exist, and they lie a pitch apart. Then there are no checks in between: the time of
/// a thread that combines many vectors depends on its number of instructions.
template <bool whole, u32 vectors, u32 elements, class T, class Combine>
MESHPOST_FN void fold_tile(T (&sum)[elements], Vectors<T> const& from, u32 k, u64 i, u32 here,
                           u32 threads, Combine combine) {
  T loaded[vectors][elements];
  u32 const left = from.count - k;
  auto const* at = from.first + k * from.pitch;
#pragma unroll
  for (u32 j = 0; j < vectors; ++j, at += from.pitch) {
    if (!whole && j >= left) break;
    T const* const source = (whole ? reinterpret_cast<T const*>(at) : from[k + j]) + i;
#pragma unroll
    for (u32 e = 0; e < elements; ++e)
      if (whole || e == 0 || e * threads < here) loaded[j][e] = source[e * threads];
  }
#pragma unroll
  for (u32 j = 0; j < vectors; ++j) {
    if (!whole && j >= left) break;
#pragma unroll
    for (u32 e = 0; e < elements; ++e)
      if (whole || e == 0 || e * threads < here)
        sum[e] = j == 0 && k == 0 ? loaded[j][e] : combine(sum[e], loaded[j][e]);
  }
}

/// Threads share the elements. Each takes `elements` of `vectors` vectors at once. All of these
/// loads are in flight before the first value is needed, because a load takes a GPU far longer than
/// to combine. Elements beyond the end are not loaded, so a few vectors take no more iterations
/// than many.
template <u32 elements, u32 vectors, class T, class Combine>
MESHPOST_COLD void fold_tiles(Targets<T> to, Vectors<T> from, u64 begin, u64 end, u32 thread,
                              u32 threads, Combine combine) {
#pragma unroll 1
  for (u64 i = begin + thread; i < end; i += static_cast<u64>(elements) * threads) {
    T sum[elements];
    u32 const here = static_cast<u32>(smaller(end - i, static_cast<u64>(elements) * threads));
    bool const all = elements == 1 || (elements - 1) * threads < here;
#pragma unroll 1
    for (u32 k = 0; k < from.count; k += vectors) {
      if (all && from.count - k >= vectors && from.own - k >= vectors)
        fold_tile<true, vectors>(sum, from, k, i, here, threads, combine);
      else fold_tile<false, vectors>(sum, from, k, i, here, threads, combine);
    }
#pragma unroll
    for (u32 e = 0; e < elements; ++e)
      if (e == 0 || e * threads < here) to.store(i + e * threads - begin, sum[e]);
  }
}

template <class T, class Combine>
MESHPOST_FN void fold(Targets<T> to, Vectors<T> from, u64 begin, u64 end, u32 thread, u32 threads,
                      Combine combine) {
  constexpr u32 at_once = sizeof(T) <= 8 ? 16 : sizeof(T) <= 16 ? 8 : sizeof(T) <= 32 ? 4 : 1;
  constexpr u32 few = at_once >= 8 ? 4 : at_once;
  if (from.count <= few && end > begin + threads)
    fold_tiles<at_once / few, few>(to, from, begin, end, thread, threads, combine);
  else fold_tiles<1, at_once>(to, from, begin, end, thread, threads, combine);
}

#else

/// A run of elements stays in a CPU's first cache. Each vector takes a loop without conditions.
template <class T, class Combine>
MESHPOST_COLD void fold(Targets<T> to, Vectors<T> from, u64 begin, u64 end, u32 thread, u32 threads,
                        Combine combine) {
  constexpr u64 most = 2048 / sizeof(T);
  T sum[most];
  for (u64 i = begin + thread * most; i < end; i += threads * most) {
    u64 const count = smaller(most, end - i);
    memory::copy(sum, from[0] + i, count * sizeof(T), 0, 1);
    for (u32 k = 1; k < from.count; ++k) {
      T const* const source = from[k] + i;
      for (u64 j = 0; j < count; ++j) sum[j] = combine(sum[j], source[j]);
    }
    for (u32 k = 0; k < to.count; ++k)
      memory::copy(reinterpret_cast<char*>(to.first + (i - begin)) + k * to.stride, sum,
                   count * sizeof(T), 0, 1);
  }
}

#endif

}  // namespace meshpost::detail
