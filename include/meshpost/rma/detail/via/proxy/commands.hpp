#pragma once
// How a rank carries out commands. command_queue.hpp has the argument.
#include "meshpost/rma/command_queue.hpp"

#if !defined(__CUDACC_RTC__)  // NVRTC has memcpy built in, but not the compiler's __builtin_memcpy
#include <cstring>
#endif

namespace meshpost {

namespace detail {

/// Bytes that a thread loads at once. A kernel that waits has registers for them, even if no
/// command comes.
struct CommandUnit {
  static constexpr u32 bytes = 16;
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
MESHPOST_FN T value_in(CommandUnit const& unit, u32 index = 0) {
  T value;
  memcpy(&value, unit.data + index * sizeof(T), sizeof(T));
  return value;
}

/// As many values of the unit as there are bytes.
template <class T>
MESHPOST_FN void store_values(char* to, CommandUnit const& unit, u64 bytes) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (u32 i = 0; i < CommandUnit::bytes / sizeof(T); ++i)
    if (i < bytes / sizeof(T)) reinterpret_cast<T*>(to)[i] = value_in<T>(unit, i);
}

template <class T>
MESHPOST_FN void store_whole(char* to, CommandUnit const& unit) {
  memory::store(reinterpret_cast<T*>(to), value_in<T>(unit), Order::none);
}

MESHPOST_FN inline void store_word(char* to, CommandUnit const& unit, u64 bytes) {
  switch (bytes) {
    case 1: return store_whole<u8>(to, unit);
    case 2: return store_whole<unsigned short>(to, unit);
    case 4: return store_whole<u32>(to, unit);
    default: return store_whole<u64>(to, unit);
  }
}

MESHPOST_FN inline void raise(via::Signal const& count) {
  memory::add(count.word(), count.value(), Order::none);
  if (count.distance() != 0) memory::store_relaxed(count.origin_word(), count.origin);
}

/// A put's bytes, a unit a thread in turns; `unit` has this thread's first. Not unrolled: each load
/// that is in flight takes registers of every kernel that waits.
MESHPOST_FN inline void store_bytes(via::Message const& message, char const* bytes,
                                    CommandUnit unit, Team team) {
  u64 const step = u64{CommandUnit::bytes} * team.threads;
  bool const words = (message.address | message.bytes) % sizeof(u32) == 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (u64 at = u64{CommandUnit::bytes} * team.thread; at < message.bytes; at += step) {
    if (at >= step) read_whole(unit, bytes + at);
    if (words) store_values<u32>(message.target() + at, unit, message.bytes - at);
    else store_values<u8>(message.target() + at, unit, message.bytes - at);
  }
}

/// By a team that has met behind the acquire of the command's flag.
MESHPOST_COLD inline void carry_out(Command const& command, char const* bytes, Team team) {
  via::Message message;
  CommandUnit unit;  // read before it is known how many bytes there are, in the same trip
  read_whole(unit, bytes + u64{CommandUnit::bytes} * team.thread);
  read_whole(message, &command.message);
  bool const is_word = message.type == via::Message::Type::store;
  if (!is_word) store_bytes(message, bytes, unit, team);
  team.sync();
  if (!team.first()) return;
  memory::fence(Order::device);
  if (is_word) {
    store_word(message.target(), unit, message.bytes);
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

/// Carries out the next command if it is a count alone. True: it has more, and is this team's; then
/// `number` is its number. By one thread.
MESHPOST_FN inline bool take_next(CommandQueue const& queue, u32& number) {
  auto& so_far = *queue.turns;
  if (!so_far.begin_look()) return false;
  u32 const told = memory::load_relaxed(&so_far.told);
  number = memory::load_acquire(&so_far.taken);
  auto& command = queue.at(number);
  auto head = look(command);
  so_far.end_look();
  if (head.ready == CommandQueue::flag_of(number)) {
    if (!so_far.claim(number)) return false;  // another rank does
#if !defined(__CUDA_ARCH__)
    head = command.message.signal;
#endif
    if (head.has_more()) return true;
    carry_out(head);
    memory::store(&so_far.taken, number + 1, Order::none);
  } else if (told != number && so_far.claim(number)) {
    // Once told, the host may use the places again. This is done only when nothing comes, because
    // it takes a fence.
    memory::store_relaxed(&so_far.told, number);
    queue.tell(number);
    memory::store(&so_far.claimed, number, Order::device);
  }
  return false;
}

}  // namespace detail

MESHPOST_COLD inline void CommandQueue::poll(Team team) const {
  u32 number = 0;
  bool const has_more = team.first() && detail::take_next(*this, number);
  if (!team.any(has_more)) return;
  number = team.from_first(number);
  team.sync();  // the others read behind the acquire of the first
  detail::carry_out(at(number), bytes.of(number), team);
  if (team.first()) memory::store(&turns->taken, number + 1, Order::none);
}

}  // namespace meshpost
