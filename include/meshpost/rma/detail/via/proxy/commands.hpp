#pragma once
// How a rank carries out commands. command_queue.hpp has the argument.
#include "meshpost/rma/command_queue.hpp"

#if !defined(__CUDACC_RTC__)  // NVRTC has memcpy built in, but not the compiler's __builtin_memcpy
#include <cstring>
#endif

namespace meshpost {

namespace detail {

/// The part of a command that is read in one trip over the bus. A kernel that waits has registers
/// for it, even if no command comes.
struct CommandPart {
  static constexpr u32 bytes = 64;
  alignas(16) char data[bytes];
};

// Not memory::copy, which would bring its many registers into every kernel that waits.
template <class T>
MESHPOST_FN void read_whole(T& to, void const* from) {
#if defined(__CUDA_ARCH__)
  static_assert(sizeof(T) % sizeof(uint4) == 0);
  constexpr u32 units = sizeof(T) / sizeof(uint4);
  uint4 unit[units];
#pragma unroll
  for (u32 i = 0; i < units; ++i) unit[i] = static_cast<uint4 const*>(from)[i];
  memcpy(&to, unit, sizeof(T));
#else
  memcpy(&to, from, sizeof(T));
#endif
}

template <class T>
MESHPOST_FN T value_in(CommandPart const& part, u32 index = 0) {
  T value;
  memcpy(&value, part.data + index * sizeof(T), sizeof(T));
  return value;
}

/// One after the other, in a loop that is not unrolled: unrolled, it takes some 40 registers.
template <class T>
MESHPOST_FN void store_values(char* to, CommandPart const& part, u64 bytes) {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (u32 i = 0; i < CommandPart::bytes / sizeof(T) && i < bytes / sizeof(T); ++i)
    reinterpret_cast<T*>(to)[i] = value_in<T>(part, i);
}

template <class T>
MESHPOST_FN void store_whole(char* to, CommandPart const& part) {
  memory::store(reinterpret_cast<T*>(to), value_in<T>(part), Order::none);
}

MESHPOST_FN inline void store_word(char* to, CommandPart const& part, u64 bytes) {
  switch (bytes) {
    case 1: return store_whole<u8>(to, part);
    case 2: return store_whole<unsigned short>(to, part);
    case 4: return store_whole<u32>(to, part);
    default: return store_whole<u64>(to, part);
  }
}

MESHPOST_FN inline void raise(via::Signal const& count) {
  memory::add(count.word(), count.value(), Order::none);
  if (count.distance() != 0) memory::store_relaxed(count.origin_word(), count.origin);
}

MESHPOST_COLD inline void carry_out(Command const& command) {
  struct {
    via::Message message;
    CommandPart part;
  } read;
  read_whole(read, &command);
  auto const& message = read.message;
  bool const is_word = message.type == via::Message::Type::store;
  if (!is_word) {
    bool const words = (message.address | message.bytes) % sizeof(u32) == 0;
    for (u64 at = 0; at < message.bytes; at += CommandPart::bytes) {
      if (at != 0) read_whole(read.part, command.data + at);
      if (words) store_values<u32>(message.target() + at, read.part, message.bytes - at);
      else store_values<u8>(message.target() + at, read.part, message.bytes - at);
    }
  }
  memory::fence(Order::device);
  if (is_word) {
    store_word(message.target(), read.part, message.bytes);
    memory::fence(Order::device);  // later commands' counters cover it
  }
  if (message.signal.any()) raise(message.signal);
}

/// The first 16 bytes of a command; acquires. On a CPU device only the flag: the host may be
/// writing the rest, which is not read in the same load.
MESHPOST_FN inline via::Signal look(Command& command) {
  via::Signal head;
#if defined(__CUDA_ARCH__)
  memory::load_line_acquire(&command.message.signal, head.counter, head.origin, head.ready);
#else
  head.ready = memory::load_acquire(command.flag());
#endif
  return head;
}

MESHPOST_FN inline void carry_out(via::Signal const& count) {
  memory::fence(Order::device);  // releases earlier commands' bytes, and copies before this one
  raise(count);
}

}  // namespace detail

MESHPOST_COLD inline void CommandQueue::poll() const {
  auto& so_far = *turns;
  if (!so_far.begin_look()) return;
  u32 const told = memory::load_relaxed(&so_far.told);
  u32 const taken = memory::load_acquire(&so_far.taken);
  auto& command = at(taken);
  auto head = detail::look(command);
  so_far.end_look();
  if (head.ready == flag_of(taken)) {
    if (!so_far.claim(taken)) return;  // another rank does
#if !defined(__CUDA_ARCH__)
    head = command.message.signal;
#endif
    if (head.has_more()) detail::carry_out(command);
    else detail::carry_out(head);
    memory::store(&so_far.taken, taken + 1, Order::none);
  } else if (told != taken && so_far.claim(taken)) {
    // Once told, the host may use the places again. This is done only when nothing comes, because
    // it takes a fence.
    memory::store_relaxed(&so_far.told, taken);
    tell(taken);
    memory::store(&so_far.claimed, taken, Order::device);
  }
}

}  // namespace meshpost
