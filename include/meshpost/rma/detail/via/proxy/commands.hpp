#pragma once
// How a rank carries out commands. command_queue.hpp says why it is right.
#include "meshpost/rma/command_queue.hpp"

#if !defined(__CUDACC_RTC__)  // which has memcpy by itself, and not the compiler's __builtin_memcpy
#include <cstring>
#endif

namespace meshpost {

namespace detail {

// Not by memory::copy, which would bring its many registers into every kernel that waits.
template <class T>
MESHPOST_FN T value_in(Command const& command, u32 index = 0) {
  T value;
  memcpy(&value, command.data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
MESHPOST_FN void store_whole(Command const& command) {
  memory::store(static_cast<T*>(command.target), value_in<T>(command), Order::none);
}

/// A command's few bytes, one after the other.
template <class T>
MESHPOST_FN void store_bytes(Command const& command) {
  auto* const to = static_cast<T*>(command.target);
  for (u32 i = 0; i < command.bytes / sizeof(T); ++i) to[i] = value_in<T>(command, i);
}

MESHPOST_FN inline void store_word(Command const& command) {
  switch (command.word) {
    case 1: return store_whole<u8>(command);
    case 2: return store_whole<unsigned short>(command);
    case 4: return store_whole<u32>(command);
    default: return store_whole<u64>(command);
  }
}

MESHPOST_FN inline void carry_out(Command const& command) {
  if (command.word == 0) {
    bool const words = (reinterpret_cast<u64>(command.target) | command.bytes) % sizeof(u32) == 0;
    if (words) store_bytes<u32>(command);
    else store_bytes<u8>(command);
  }
  memory::fence(Order::device);
  if (command.word != 0) {
    store_word(command);
    memory::fence(Order::device);  // it is what later commands' counters cover
  }
  if (!command.counter) return;
  memory::add(command.counter, command.value, Order::none);
  if (command.sender_word) memory::store_relaxed(command.sender_word, command.sender);
}

/// What it begins with; acquires. On a CPU device only the flag: the rest may be written just now,
/// and isn't read in the same load.
MESHPOST_FN inline PackedSignal look(Command const& command) {
  PackedSignal head;
#if defined(__CUDA_ARCH__)
  memory::load_line_acquire(&command.signal, head.address, head.number, head.ready);
#else
  head.ready = memory::load_acquire(&command.signal.ready);
#endif
  return head;
}

MESHPOST_FN inline void carry_out(PackedSignal const& count) {
  memory::fence(Order::device);  // releases earlier commands' bytes, and copies before this one
  memory::add(count.counter(), count.has_sender() ? 1 : count.number, Order::none);
  if (count.has_sender()) memory::store_relaxed(count.sender_word(), count.number);
}

/// All of it at once: one trip over the bus, not one for each field.
MESHPOST_FN inline Command read(Command const& command) {
#if defined(__CUDA_ARCH__)
  constexpr u32 units = sizeof(Command) / sizeof(uint4);
  static_assert(sizeof(Command) % sizeof(uint4) == 0);
  union Raw {
    uint4 unit[units];
    Command command;
    MESHPOST_FN Raw() {}
  } raw;
  auto const* const from = reinterpret_cast<uint4 const*>(&command);
#pragma unroll
  for (u32 i = 0; i < units; ++i) raw.unit[i] = from[i];
  return raw.command;
#else
  return command;
#endif
}

}  // namespace detail

MESHPOST_COLD inline void CommandQueue::poll() const {
  auto& so_far = *words;
  u32 const told = memory::load_relaxed(&so_far.told);
  u32 const taken = memory::load_acquire(&so_far.taken);
  auto& command = commands[taken % CommandQueue::capacity];
  auto head = detail::look(command);
  if (head.ready == taken + 1) {
    if (!memory::replace_device(&so_far.claimed, taken, taken + 1)) return;  // somebody else does
#if !defined(__CUDA_ARCH__)
    head = command.signal;
#endif
    if (head.address != 0) detail::carry_out(head);
    else detail::carry_out(detail::read(command));
    memory::store_relaxed(&so_far.taken, taken + 1);
  } else if (told != taken && memory::replace_device(&so_far.claimed, taken, taken + 1)) {
    // The host may use the slots again once it is told. Only now that nothing comes, for it takes
    // a fence.
    memory::store_relaxed(&so_far.told, taken);
    memory::store(applied, taken, Order::system);
    memory::store(&so_far.claimed, taken, Order::device);
  }
}

}  // namespace meshpost
