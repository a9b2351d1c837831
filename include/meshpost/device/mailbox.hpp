#pragma once
#include "meshpost/device/block.hpp"

// What the host brings to ranks of a device whose memory it can't reach by loads and stores: the
// host writes letters into its own memory, ranks that wait carry them out. A host can't add to a
// counter over PCIe, and a copy that it starts takes 5 us; a rank that polls sees a letter in one.
//
// Delivery is at consumption, so it is early enough when somebody waits. What nobody has carried
// out at the end of a run the host does, for then nobody else touches the memory.
//
// Order: letters are carried out one after the other, by whoever has the lock. The host's store of
// `ready` releases the letter, and what its copy engines wrote before (MailboxAccess); the holder
// acquires it, stores the bytes, fences at device scope and raises the counter, all on one device:
// the rest of the way is that of any notification (rma/detail/put.hpp). The lock passes on what one
// holder has done to the next, so a later letter's counter also covers earlier letters' bytes.

namespace meshpost {

/// Bytes, then a counter to raise, or a word to store whole.
struct Letter {
  static constexpr u32 most = 128;

  u32 ready = 0;  ///< number of the letter + 1 once it may be read
  u32 bytes = 0;  ///< of `data`, for `target`; longer ones are there before the letter
  void* target = nullptr;
  u32* counter = nullptr;  ///< null: none
  u32* sender_word = nullptr;
  u32 value = 0;   ///< to add to the counter
  u32 sender = 0;  ///< for sender_word
  u32 word = 0;    ///< not 0: `target` is a word of that many bytes, stored whole
  u32 reserved = 0;
  alignas(16) char data[most]{};
};

/// A device's letters. `letters` null: all comes by loads and stores.
struct Mailbox {
  Letter* letters = nullptr;  ///< a ring of `capacity`, in memory of both
  u32* applied = nullptr;     ///< carried out, as far as the host is told; in memory of both
  struct Words {
    u32 lock, taken, told;  ///< taken: carried out; told: value of *applied
  };
  Words* words = nullptr;  ///< in the device's memory
  static constexpr u32 capacity = 512;
};

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
