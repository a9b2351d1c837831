#pragma once
#include <meshpost/base/types.hpp>

namespace meshpost::apps {

/// Numbers that ordered_sum() makes of all numbers before it adds them in pairs.
inline constexpr u32 partials = 256;

/// The sum of `count` numbers, for all threads, always by the same additions: its bits depend
/// neither on how many threads compute it, nor on the kind of device. Number k, which is
/// `number(k)`, goes to partial sum k % 256. `partial` is memory that the threads share, for 256
/// numbers; `sync` synchronizes them. All threads of the rank or block call it; on a GPU they are
/// whole warps. Before they call it again with the same memory, they meet.
template <class Number, class Sync>
MESHPOST_FN double ordered_sum(u32 count, Number const& number, u32 thread, u32 threads,
                               double* partial, Sync const& sync) {
  for (u32 p = thread; p < partials; p += threads) {
    double sum = 0;
    for (u32 k = p; k < count; k += partials) sum += number(k);
    partial[p] = sum;
  }
  sync();
  auto const eight = [&](u32 k) {  // those that are 32 apart
    return ((partial[k] + partial[k + 128]) + (partial[k + 64] + partial[k + 192])) +
           ((partial[k + 32] + partial[k + 160]) + (partial[k + 96] + partial[k + 224]));
  };
#if defined(__CUDA_ARCH__)
  double sum = eight(thread % 32);
#pragma unroll
  for (u32 distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(~0u, sum, static_cast<int>(distance));
  return sum;
#else
  double sum[32];
  for (u32 k = 0; k < 32; ++k) sum[k] = eight(k);
  for (u32 half = 16; half > 0; half /= 2)
    for (u32 k = 0; k < half; ++k) sum[k] += sum[k + half];
  return sum[0];
#endif
}

}  // namespace meshpost::apps
