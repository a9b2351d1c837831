#pragma once
#include "meshpost/device/block.hpp"

namespace meshpost {

// The memory operations of the protocols (PTX memory model, names as in the ISA).
namespace memory {

inline constexpr bool on_gpu = true;

MESHPOST_FN inline u32 load_acquire(u32 const* word) {
  u32 value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
MESHPOST_FN inline u64 load_bits_acquire(void const* word, u32 bytes) {
  if (bytes == 4) return load_acquire(static_cast<u32 const*>(word));
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
// Fences that order one way (PTX ISA 8.6). An acquire then takes a few cycles, not half a
// microsecond. A release keeps what the block has cached.
#if __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define MESHPOST_FENCE(order, scope) asm volatile("fence." order "." scope ";" ::: "memory")
#else
#define MESHPOST_FENCE(order, scope) asm volatile("fence.acq_rel." scope ";" ::: "memory")
#endif
/// Releases: a thread that acquires a later store of this thread sees all that this thread has
/// stored and seen before.
MESHPOST_FN inline void fence(Order order) {
  if (order == Order::system) MESHPOST_FENCE("release", "sys");
  else if (order == Order::device) MESHPOST_FENCE("release", "gpu");
}
/// Turns earlier relaxed loads into acquires.
MESHPOST_FN inline void acquire_fence() { MESHPOST_FENCE("acquire", "sys"); }
#undef MESHPOST_FENCE
/// True if the host can read and write this address. Only ranks can access shared memory, a
/// thread's own memory and a kernel's arguments.
MESHPOST_FN inline bool host_reaches(void const* address) {
  u32 yes;
  asm("{ .reg .pred p; isspacep.global p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(yes) : "l"(address));
  return yes != 0;
}
/// All adds to one word have system scope, no matter which thread adds: adds of different scopes
/// would race. Called by one thread, which may be any.
MESHPOST_FN inline void add(u32* word, u32 value, Order order) {
  // The caller is alone. But the compiler elects one thread and counts the others, which takes
  // twenty instructions. An address that could differ between threads prevents that. No lane is in
  // both masks.
  u32 none;
  asm volatile(
      "{ .reg .u32 below, others; mov.u32 below, %%lanemask_lt; mov.u32 others, %%lanemask_ge; "
      "and.b32 %0, below, others; }"
      : "=r"(none));
  word += none;
  fence(order);
  asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
MESHPOST_FN inline void add(u64* word, u64 value, Order order) {
  fence(order);
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
MESHPOST_FN inline u32 fetch_add(u32* word, u32 value) {
  u32 old;
  asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(word), "r"(value)
               : "memory");
  return old;
}
MESHPOST_FN inline u32 fetch_add_device(u32* word, u32 value) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(word), "r"(value)
               : "memory");
  return old;
}
MESHPOST_FN inline bool replace_device(u32* word, u32 expected, u32 value) {
  u32 old;
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(word), "r"(expected), "r"(value)
               : "memory");
  return old == expected;
}
MESHPOST_FN inline u32 load_relaxed(u32 const* word) {
  u32 value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
MESHPOST_FN inline u64 load_relaxed(u64 const* word) {
  u64 value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
MESHPOST_FN inline void store_relaxed(u32* word, u32 value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
template <class T>
MESHPOST_FN inline void store(T* word, T value, Order order) {
  fence(order);
  if constexpr (sizeof(T) == 8)
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word),
                 "l"(__builtin_bit_cast(u64, value))
                 : "memory");
  else if constexpr (sizeof(T) == 4)
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(word),
                 "r"(__builtin_bit_cast(u32, value))
                 : "memory");
  else if constexpr (sizeof(T) == 2)
    asm volatile("st.relaxed.sys.global.u16 [%0], %1;" ::"l"(word),
                 "h"(__builtin_bit_cast(unsigned short, value))
                 : "memory");
  else
    asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(word),
                 "r"(u32{__builtin_bit_cast(u8, value)})
                 : "memory");
}
/// Takes the counter's whole count; acquires. One thread.
MESHPOST_FN inline u32 take_all(u32* word) {
  u32 old;
  asm volatile("atom.acquire.sys.global.exch.b32 %0, [%1], 0;" : "=r"(old) : "l"(word) : "memory");
  return old;
}
/// Words of a message in one packet on this device: three, with the flag in the same 16-byte store.
inline constexpr u32 packet_words = 3;
MESHPOST_FN inline void store_packet(void* packet, u32 const* words, u32 flag) {
  asm volatile(
      "{.reg .b128 whole; .reg .b64 low, high;"
      " mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4}; mov.b128 whole, {low, high};"
      " st.relaxed.sys.global.b128 [%0], whole;}" ::"l"(packet),
      "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(flag)
      : "memory");
}
/// Words and flag of a packet, in one load.
MESHPOST_FN inline void load_packet(void const* packet, u32 (&words)[4]) {
  asm volatile(
      "{.reg .b128 whole; .reg .b64 low, high;"
      " ld.relaxed.sys.global.b128 whole, [%4]; mov.b128 {low, high}, whole;"
      " mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high;}"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "l"(packet)
      : "memory");
}
/// 16 bytes, aligned.
MESHPOST_FN inline void load_line(u32 const* line, u32 (&words)[4]) { load_packet(line, words); }
/// The same; acquires.
MESHPOST_FN inline void load_line_acquire(void const* line, u64& first, u32& third, u32& fourth) {
  asm volatile(
      "{.reg .b128 whole; .reg .b64 high;"
      " ld.acquire.sys.global.b128 whole, [%3]; mov.b128 {%0, high}, whole; mov.b64 {%1, %2}, "
      "high;}"
      : "=l"(first), "=r"(third), "=r"(fourth)
      : "l"(line)
      : "memory");
}
/// Keeps the compiler from using the last of several loads before all have been issued.
MESHPOST_FN inline void all_loaded(u32 (&last)[4]) {
  asm volatile("" : "+r"(last[0]), "+r"(last[1]), "+r"(last[2]), "+r"(last[3])::"memory");
}
/// Nanoseconds on this device's clock.
MESHPOST_FN inline u64 clock_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Units of V at `target`, with eight independent loads in flight for each thread: as much as one
/// block can move over NVLink.
template <class V>
MESHPOST_FN inline void copy_units(void* target, void const* source, u64 units, u32 thread,
                                   u32 threads) {
  auto* const to = static_cast<V*>(target);
  auto const* const from = static_cast<V const*>(source);
  u64 i = thread;
  for (; i + 7ull * threads < units; i += 8ull * threads) {
    V unit[8];
#pragma unroll
    for (u32 k = 0; k < 8; ++k) unit[k] = from[i + static_cast<u64>(k) * threads];
#pragma unroll
    for (u32 k = 0; k < 8; ++k) to[i + static_cast<u64>(k) * threads] = unit[k];
  }
  for (; i < units; i += threads) to[i] = from[i];
}

/// Any size and alignment; out of line, so that a kernel with many puts stays small.
MESHPOST_COLD inline void copy_any(void* target, void const* source, u64 bytes, u32 thread,
                                   u32 threads) {
  auto* to = static_cast<u8*>(target);
  auto const* from = static_cast<u8 const*>(source);
  u64 const offsets = reinterpret_cast<u64>(to) ^ reinterpret_cast<u64>(from);
  if ((offsets & 15) == 0) {
    u64 const to_boundary = (16 - (reinterpret_cast<u64>(to) & 15)) & 15;
    u64 const head = to_boundary < bytes ? to_boundary : bytes;
    if (thread < head) to[thread] = from[thread];
    to += head, from += head, bytes -= head;
    copy_units<uint4>(to, from, bytes / 16, thread, threads);
    u64 const tail = bytes & 15;
    if (thread < tail) to[bytes - tail + thread] = from[bytes - tail + thread];
    if (threads < 16)  // too few threads for one byte each
      for (u32 i = thread + threads; i < 16; i += threads) {
        if (i < head) to[i - head] = from[i - head];
        if (i < tail) to[bytes - tail + i] = from[bytes - tail + i];
      }
    return;
  }
  u64 const low = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes;
  if ((low & 7) == 0) copy_units<u64>(to, from, bytes / 8, thread, threads);
  else if ((low & 3) == 0) copy_units<u32>(to, from, bytes / 4, thread, threads);
  else copy_units<u8>(to, from, bytes, thread, threads);
}

/// This thread's share of a copy of `bytes`.
MESHPOST_FN inline void copy(void* target, void const* source, u64 bytes, u32 thread, u32 threads) {
  u64 const low = reinterpret_cast<u64>(target) | reinterpret_cast<u64>(source) | bytes;
  if ((low & 3) == 0 &&
      bytes <= 4ull * threads) {  // small puts: one load and one store, nothing to decide
    if (thread < bytes / 4)
      static_cast<u32*>(target)[thread] = static_cast<u32 const*>(source)[thread];
  } else {
    copy_any(target, source, bytes, thread, threads);
  }
}

}  // namespace memory

}  // namespace meshpost
