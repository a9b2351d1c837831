#pragma once
// How a rank carries out letters. mailbox.hpp says why it is right.
#include "meshpost/rma/mailbox.hpp"

#if !defined(__CUDACC_RTC__)  // which has memcpy by itself, and not the compiler's __builtin_memcpy
#include <cstring>
#endif

namespace meshpost {

namespace detail {

// Not by memory::copy, which would bring its many registers into every kernel that waits.
template <class T>
MESHPOST_FN T value_in(Letter const& letter, u32 index = 0) {
  T value;
  memcpy(&value, letter.data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
MESHPOST_FN void store_whole(Letter const& letter) {
  memory::store(letter.message.target<T>(), value_in<T>(letter), Order::none);
}

/// A letter's few bytes, one after the other.
template <class T>
MESHPOST_FN void store_bytes(Letter const& letter) {
  auto* const to = letter.message.target<T>();
  for (u32 i = 0; i < letter.message.bytes / sizeof(T); ++i) to[i] = value_in<T>(letter, i);
}

MESHPOST_FN inline void store_word(Letter const& letter) {
  switch (letter.message.bytes) {
    case 1: return store_whole<u8>(letter);
    case 2: return store_whole<unsigned short>(letter);
    case 4: return store_whole<u32>(letter);
    default: return store_whole<u64>(letter);
  }
}

MESHPOST_FN inline void raise(via::Signal const& count) {
  memory::add(count.word(), count.value(), Order::none);
  if (count.distance() != 0) memory::store_relaxed(count.origin_word(), count.origin);
}

MESHPOST_COLD inline void carry_out(Letter const& letter) {
  auto const& message = letter.message;
  bool const is_word = message.kind == via::Message::Kind::store;
  if (!is_word) {
    bool const words = (message.place | message.bytes) % sizeof(u32) == 0;
    if (words) store_bytes<u32>(letter);
    else store_bytes<u8>(letter);
  }
  memory::fence(Order::device);
  if (is_word) {
    store_word(letter);
    memory::fence(Order::device);  // it is what later letters' counters cover
  }
  if (message.signal.any()) raise(message.signal);
}

/// What it begins with; acquires. On a CPU device only the flag: the rest may be written just now,
/// and isn't read in the same load.
MESHPOST_FN inline via::Signal look(Letter& letter) {
  via::Signal head;
#if defined(__CUDA_ARCH__)
  memory::load_line_acquire(&letter.message.signal, head.counter, head.origin, head.ready);
#else
  head.ready = memory::load_acquire(letter.flag());
#endif
  return head;
}

MESHPOST_FN inline void carry_out(via::Signal const& count) {
  memory::fence(Order::device);  // releases earlier letters' bytes, and copies before this one
  raise(count);
}

/// All of it at once: one trip over the bus, not one for each field.
MESHPOST_FN inline Letter read(Letter const& letter) {
#if defined(__CUDA_ARCH__)
  constexpr u32 units = sizeof(Letter) / sizeof(uint4);
  static_assert(sizeof(Letter) % sizeof(uint4) == 0);
  union Raw {
    uint4 unit[units];
    Letter letter;
    MESHPOST_FN Raw() {}
  } raw;
  auto const* const from = reinterpret_cast<uint4 const*>(&letter);
#pragma unroll
  for (u32 i = 0; i < units; ++i) raw.unit[i] = from[i];
  return raw.letter;
#else
  return letter;
#endif
}

}  // namespace detail

MESHPOST_COLD inline void Mailbox::poll() const {
  auto& so_far = *turns;
  u32 const told = memory::load_relaxed(&so_far.told);
  u32 const taken = memory::load_acquire(&so_far.taken);
  auto& letter = at(taken);
  auto head = detail::look(letter);
  if (head.ready == flag_of(taken)) {
    if (!so_far.claim(taken)) return;  // somebody else does
#if !defined(__CUDA_ARCH__)
    head = letter.message.signal;
#endif
    if (head.has_more()) detail::carry_out(detail::read(letter));
    else detail::carry_out(head);
    memory::store_relaxed(&so_far.taken, taken + 1);
  } else if (told != taken && so_far.claim(taken)) {
    // The host may use the places again once it is told. Only now that nothing comes, for it takes
    // a fence.
    memory::store_relaxed(&so_far.told, taken);
    tell(taken);
    memory::store(&so_far.claimed, taken, Order::device);
  }
}

}  // namespace meshpost
