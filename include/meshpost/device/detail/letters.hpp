#pragma once
// Part of device/block.hpp: how a rank carries out letters. mailbox.hpp says why it is right.
#include "meshpost/device/mailbox.hpp"

namespace meshpost {

namespace detail {

template <class T>
MESHPOST_FN void store_whole(Letter const& letter) {
  T value;
  memory::copy(&value, letter.data, sizeof(T), 0, 1);
  memory::store(static_cast<T*>(letter.target), value, Order::device);
}

MESHPOST_FN inline void carry_out(Letter const& letter) {
  switch (letter.word) {
    case 1: store_whole<u8>(letter); break;
    case 2: store_whole<unsigned short>(letter); break;
    case 4: store_whole<u32>(letter); break;
    case 8: store_whole<u64>(letter); break;
    default: memory::copy(letter.target, letter.data, letter.bytes, 0, 1);
  }
  if (!letter.counter) return;
  if (letter.sender_word) memory::store_relaxed(letter.sender_word, letter.sender);
  memory::add(letter.counter, letter.value, Order::device);
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

/// Carries out what has come; by one thread of a rank that waits.
MESHPOST_COLD inline void open_letters(Mailbox const& mail) {
  auto& words = *mail.words;
  auto const at = [&](u32 number) -> Letter& { return mail.letters[number % Mailbox::capacity]; };
  u32 const seen = memory::load_relaxed(&words.taken);
  bool const there = memory::load_acquire(&at(seen).ready) == seen + 1;
  if (!there && memory::load_relaxed(&words.told) == seen) return;
  if (memory::exchange_device(&words.lock, 1) != 0) return;  // somebody else does
  u32 taken = memory::load_relaxed(&words.taken);
  u32 const before = taken;
  while (memory::load_acquire(&at(taken).ready) == taken + 1) {
    auto const letter = detail::read(at(taken));
    detail::carry_out(letter);
    memory::store_relaxed(&words.taken, ++taken);
  }
  // The host may use their places again once it is told. Not at once, for that takes a fence: only
  // when nothing came meanwhile.
  if (taken == before && memory::load_relaxed(&words.told) != taken) {
    memory::store_relaxed(&words.told, taken);
    memory::store(mail.applied, taken, Order::system);
  }
  memory::exchange_device(&words.lock, 0);
}

}  // namespace meshpost
