#pragma once
#include "meshpost/rma/detail/via/lane/read.hpp"

// The most frequent wait on GPUs: for one count, which comes the same way as the last one of this
// counter. All loads of a poll are in flight at once, and one vote decides.

#if defined(__CUDA_ARCH__)
namespace meshpost::detail {

/// The message that poll_fast() awaits, and its places.
struct LanePoll::Awaited {
  u32 thread, lane, bytes;
  u32 rest;  ///< packets behind the first two
  u32 flag, behind, shift;
  u32 expected;  ///< a larger value in `watched`: something else has come
  bool live, mine, near;
  u32 b, c;  ///< LaneHeader::word
  Packet const* head;
  Packet const* more[loads_ahead];
  u32 const* watched;  ///< by the first threads

  __device__ bool has(u32 k) const { return thread + 32 * k < rest; }
  __device__ u32 flag_of(u32 k) const { return Lanes::flag(behind + 32 * k, shift); }
};

/// One poll of all of it.
template <u32 loads>
struct LanePoll::Look {
  u32 header[4], first[4], next[loads == 0 ? 1 : loads][4], value;

  __device__ void begin(Awaited const& one) {
    value = header[3] = 0;
    if (one.mine) memory::load_packet(one.head + 1, first);
#pragma unroll
    for (u32 k = loads; k-- != 0;)
      if (one.has(k)) memory::load_packet(one.more[k], next[k]);
    if (one.thread < 3) value = memory::load_relaxed(one.watched);
    if (one.live) memory::load_packet(one.head, header);
  }
  __device__ bool here(Awaited const& one) const { return header[3] == one.flag; }
  __device__ bool known(Awaited const& one) const {
    return one.mine && header[1] == one.b && header[2] == one.c && header[0] % 4 == 0;
  }
  __device__ bool more(Awaited const& one) const { return value > one.expected; }
  /// True if all that this thread loads of a known message has come.
  __device__ bool whole(Awaited const& one) const {
    bool all_of_it = one.near ? one.thread != 0 || value != 0
                              : !one.mine || (here(one) && known(one) &&
                                              (one.bytes == 0 || first[3] == one.flag));
#pragma unroll
    for (u32 k = loads; k-- != 0;)
      if (one.has(k)) all_of_it &= next[k][3] == one.flag_of(k);
    return all_of_it;
  }
};

/// Polls until everything has come, into `look`. Returns false after a short time, or if something
/// else has come.
template <u32 loads>
__device__ bool LanePoll::watch(Awaited const& one, Look<loads>& look) {
#pragma unroll 1
  for (u32 left = 512; left != 0; --left) {
    look.begin(one);
    if (!__any_sync(all, look.here(one) || look.more(one))) continue;
    if (__all_sync(all, look.whole(one))) return true;
    bool const other = (look.here(one) && !look.known(one)) || look.more(one);
    if (__any_sync(all, other)) return false;
  }
  return false;
}

__device__ inline bool LanePoll::poll_fast(u32 thread, u32* counter, u32 part) {
  LaneCache& cache = lane_cache();
  cache.tell(thread);
  LaneCache::Guess const guess = cache.guess_of(counter);
  u64 const word = static_cast<u64>(counter - reinterpret_cast<u32*>(cache.device));
  auto const like = LaneHeader::from(0, guess.b, guess.c);
  bool const near = guess.lane == LaneCache::Guess::near;
  if (!near && (guess.lane >= LaneCache::lanes || like.counter != word)) return false;
  u32 const taken = cache.taken[thread], claimed = cache.claimed;
  u32* const near_word = WindowInfo::beside(counter, part, WindowInfo::near_counts);
  Awaited one;
  one.thread = thread, one.lane = guess.lane, one.bytes = like.bytes;
  one.rest = near || like.bytes <= 12 ? 0 : (like.bytes - 1) / 12;
  one.shift = cache.shift, one.flag = Lanes::flag(taken, one.shift);
  one.behind = __shfl_sync(all, taken, static_cast<int>(one.lane)) + 2 + thread;
  one.live = thread < claimed, one.mine = thread == one.lane;
  one.near = near, one.b = guess.b, one.c = guess.c;
  one.head = cache.rings + ((thread << one.shift) + Lanes::index(taken, one.shift));
#pragma unroll
  for (u32 k = 0; k < loads_ahead; ++k)
    one.more[k] =
        cache.rings + ((one.lane << one.shift) + Lanes::index(one.behind + 32 * k, one.shift));
  one.watched = thread == 0 ? near_word : thread == 1 ? counter : cache.claims;
  one.expected = thread != 2 ? 0 : claimed < LaneCache::lanes ? claimed : ~0u;
  if (one.mine && cache.owners[one.lane] != 0)  // for reports: the last raiser
    memory::store_relaxed(like.sender_of(counter),
                          WindowInfo::raiser(static_cast<u32>(cache.owners[one.lane]) - 1));
  u32 const passed = taken + like.packets();
  char* const address =
      cache.device + like.offset;  // without the lower half of the target's offset
  auto const take_first = [&](u32 const(&header)[4], u32 const(&first)[4]) {
    if (like.acquires) {  // as in take()
      if (one.mine) memory::acquire_fence();
      __syncwarp();
    }
    if (!one.mine) return;
    cache.taken[one.lane] = passed;
    auto* const target = reinterpret_cast<u32*>(address + header[0]);
#pragma unroll
    for (u32 i = 0; i < 3; ++i)
      if (4 * i < one.bytes) target[i] = first[i];
  };
  if (one.rest == 0) {
    Look<0> look;
    if (!watch(one, look)) return false;
    if (near) {
      if (thread == 0) {
        memory::acquire_fence();
        memory::add(near_word, ~0u, Order::none);
      }
    } else {
      take_first(look.header, look.first);
    }
    return true;
  }
  Look<loads_ahead> look;
  if (!watch(one, look)) return false;
  take_first(look.header, look.first);
  auto* const target = reinterpret_cast<u32*>(
      address + __shfl_sync(all, look.header[0], static_cast<int>(one.lane)));
#pragma unroll
  for (u32 k = 0; k < loads_ahead; ++k)
    if (one.has(k)) {
      u32 const at = 3 + 3 * (thread + 32 * k);
#pragma unroll
      for (u32 i = 0; i < 3; ++i)
        if (4 * (at + i) < one.bytes) target[at + i] = look.next[k][i];
    }
  return true;
}

}  // namespace meshpost::detail
#endif
