#pragma once
// Ranks on CPU devices: threads are fibers of one worker thread (src/device/cpu/scheduler.cpp).
#include <atomic>
#include <chrono>
#include <cstring>

#include "meshpost/base/hooks.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost {
namespace cpu {

/// The part of its fiber that a kernel reads without a call into the library.
struct FiberView {
  u32 thread = 0;
  u32 threads = 1;
  Dim3 index{0, 0, 0};
  Dim3 extent{};
  u32 world_rank = 0;
};

/// The fiber that runs on this thread, null outside of kernels.
FiberView* current_fiber();

// Defined by the scheduler; `fiber` is a FiberView*.
void fiber_sync(void* fiber);
bool fiber_any(void* fiber, bool yes);
void fiber_await(void* fiber, Condition const& condition, Note const& note);
u64 fiber_await_others(void* fiber, Condition const& condition, u32 bytes, RunStage stage);
void fiber_yield(void* fiber);
[[noreturn]] void fiber_fail(void* fiber, Subject subject, Fault fault, u64 a, u64 b, u64 c,
                             char const* text);
bool fiber_step(void* fiber, hooks::Step step);

inline FiberView const& view(void* fiber) { return *static_cast<FiberView*>(fiber); }

}  // namespace cpu

MESHPOST_FN inline u32 Block::thread() const { return cpu::view(fiber_).thread; }
MESHPOST_FN inline u32 Block::threads() const { return cpu::view(fiber_).threads; }
MESHPOST_FN inline Dim3 Block::thread_index() const { return cpu::view(fiber_).index; }
MESHPOST_FN inline Dim3 Block::thread_extent() const { return cpu::view(fiber_).extent; }

MESHPOST_FN inline Team Block::team() const { return {thread(), 1}; }
MESHPOST_FN inline void Block::sync() const {
  if (threads() > 1) cpu::fiber_sync(fiber_);
}
MESHPOST_FN inline void Block::rejoin() const {}
MESHPOST_FN inline bool Block::any(bool yes) const {
  return threads() > 1 ? cpu::fiber_any(fiber_, yes) : yes;
}
template <Meanwhile Work>
MESHPOST_FN void Block::await(Condition const& condition, Note const& note,
                              Work const& /*meanwhile*/) {
  if (thread() == 0) cpu::fiber_await(fiber_, condition, note);
  sync();
}
MESHPOST_FN inline void Block::tick(bool progress) {
  ++ticks_;
  idle_ticks_ += !progress;
  if (thread() == 0) {
    std::atomic_ref(report_->progress).store(ticks_ - idle_ticks_, std::memory_order_relaxed);
    if (progress && vain_ >= many_tests)
      std::atomic_ref(report_->state)
          .store(static_cast<u32>(RankState::running), std::memory_order_relaxed);
  }
  if (progress) vain_ = 0;
  if (ticks_ % 1024 == 0)
    cpu::fiber_yield(fiber_);  // a kernel that never waits must not starve others
}
template <Meanwhile Work>
MESHPOST_FN void Block::asked_in_vain(Note const& note, Work const& /*meanwhile*/) {
  if (++vain_ != many_tests || thread() != 0) return;
  report_->note = note;
  std::atomic_ref(report_->state)
      .store(static_cast<u32>(RankState::asking), std::memory_order_release);
}
MESHPOST_FN inline void Block::finish() {}  // await_others() says what the rank does
template <Meanwhile Work>
MESHPOST_FN Block::Awaited Block::await_others(Condition const& condition, u32 bytes,
                                               RunStage stage, Work const& /*meanwhile*/) {
  return {cpu::fiber_await_others(fiber_, condition, bytes, stage), true};
}
MESHPOST_FN inline void Block::yield() { cpu::fiber_yield(fiber_); }
MESHPOST_FN inline bool Block::poisoned() const { return false; }
MESHPOST_FN inline void Block::fail(Subject subject, Fault fault, u64 a, u64 b, u64 c,
                                    char const* text) {
  cpu::fiber_fail(fiber_, subject, fault, a, b, c, text);
}
MESHPOST_FN inline void Block::fail_alone(Subject subject, Fault fault, u64 a, u64 b,
                                          char const* text) const {
  cpu::fiber_fail(fiber_, subject, fault, a, b, 0, text);
}
MESHPOST_FN inline bool Block::step(hooks::Step step) {
  return !hooks::installed.load(std::memory_order_relaxed) || cpu::fiber_step(fiber_, step);
}

// The memory operations of the protocols. While a kernel runs, words are accessed by atomics only.
namespace memory {

inline constexpr bool on_gpu = false;

MESHPOST_FN inline u32 load_acquire(u32 const* word) {
  return std::atomic_ref(*const_cast<u32*>(word)).load(std::memory_order_acquire);
}
/// Bits of a word of `bytes` (4 or 8).
MESHPOST_FN inline u64 load_bits_acquire(void const* word, u32 bytes) {
  if (bytes == 4) return load_acquire(static_cast<u32 const*>(word));
  return std::atomic_ref(*static_cast<u64*>(const_cast<void*>(word)))
      .load(std::memory_order_acquire);
}
/// Adds to a counter. A CPU's release costs nothing beyond the atomic itself, so `order` makes no
/// difference.
MESHPOST_FN inline void add(u32* word, u32 value, Order /*order*/) {
  std::atomic_ref(*word).fetch_add(value, std::memory_order_release);
}
MESHPOST_FN inline void add(u64* word, u64 value, Order /*order*/) {
  std::atomic_ref(*word).fetch_add(value, std::memory_order_release);
}
/// Adds and returns the old value; acquires and releases among all ranks.
MESHPOST_FN inline u32 fetch_add(u32* word, u32 value) {
  return std::atomic_ref(*word).fetch_add(value, std::memory_order_acq_rel);
}
/// The same among the ranks of a device.
MESHPOST_FN inline u32 fetch_add_device(u32* word, u32 value) {
  return std::atomic_ref(*word).fetch_add(value, std::memory_order_acq_rel);
}
/// True if the word was `expected` and has been replaced by `value`.
MESHPOST_FN inline bool replace_device(u32* word, u32 expected, u32 value) {
  return std::atomic_ref(*word).compare_exchange_strong(expected, value, std::memory_order_acq_rel);
}
MESHPOST_FN inline u32 load_relaxed(u32 const* word) {
  return std::atomic_ref(*const_cast<u32*>(word)).load(std::memory_order_relaxed);
}
MESHPOST_FN inline u64 load_relaxed(u64 const* word) {
  return std::atomic_ref(*const_cast<u64*>(word)).load(std::memory_order_relaxed);
}
MESHPOST_FN inline void store_relaxed(u32* word, u32 value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}
/// 16 bytes, aligned.
MESHPOST_FN inline void load_line(u32 const* line, u32 (&words)[4]) {
  auto* const halves = reinterpret_cast<u64*>(const_cast<u32*>(line));
  for (u32 i = 0; i < 2; ++i) {
    u64 const bits = std::atomic_ref(halves[i]).load(std::memory_order_relaxed);
    words[2 * i] = static_cast<u32>(bits), words[2 * i + 1] = static_cast<u32>(bits >> 32);
  }
}
/// Takes the counter's whole count; acquires.
MESHPOST_FN inline u32 take_all(u32* word) {
  return std::atomic_ref(*word).exchange(0, std::memory_order_acquire);
}
/// Stores an aligned word of 1, 2, 4 or 8 bytes whole, after what `order` says.
template <class T>
MESHPOST_FN inline void store(T* word, T value, Order /*order*/) {
  __atomic_store(word, &value, __ATOMIC_RELEASE);
}
MESHPOST_FN inline void fence(Order /*order*/) {}  // every notification releases

/// Words of a message in one packet on this device: two, each with the flag in the same 8-byte
/// store.
inline constexpr u32 packet_words = 2;
MESHPOST_FN inline void store_packet(void* packet, u32 const* words, u32 flag) {
  for (u32 i = 0; i < packet_words; ++i)
    store(static_cast<u64*>(packet) + i, words[i] | static_cast<u64>(flag) << 32, Order::none);
}
/// True if the whole packet has this flag. Then `words` are its words.
MESHPOST_FN inline bool load_packet(void const* packet, u32* words, u32 flag) {
  bool whole = true;
  for (u32 i = 0; i < packet_words; ++i) {
    u64 const bits = load_bits_acquire(static_cast<u64 const*>(packet) + i, sizeof(u64));
    words[i] = static_cast<u32>(bits);
    whole &= static_cast<u32>(bits >> 32) == flag;
  }
  return whole;
}

/// True if the host can read and write this address.
MESHPOST_FN inline bool host_reaches(void const* /*address*/) { return true; }

/// This thread's share of a copy of `bytes`.
MESHPOST_FN inline void copy(void* target, void const* source, u64 bytes, u32 thread, u32 threads) {
  u64 const share = (bytes + threads - 1) / threads;
  u64 const from = share * thread < bytes ? share * thread : bytes;
  u64 const size = share < bytes - from ? share : bytes - from;
  if (size != 0)
    std::memmove(static_cast<char*>(target) + from, static_cast<char const*>(source) + from, size);
}
/// Nanoseconds on this device's clock.
MESHPOST_FN inline u64 clock_ns() {
  auto const now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace memory
}  // namespace meshpost
