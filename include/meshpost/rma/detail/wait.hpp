#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/detail/via/lane/fast_poll.hpp"
#include "meshpost/rma/rank.hpp"

namespace meshpost {

// A consumed count is subtracted from the counter itself, so a wait reads one word. Only the rank
// that owns the counter subtracts, and never more than it has seen there. `found`: the part of the
// count that came by lane and was not added to the counter (GPUs).
MESHPOST_FN inline void Rank::consume(u32* counter, u32 count, u32 found) {
  block_.step(hooks::Step::wait_consume);
  if (thread() == 0) {
    if (delivery::checked(state_->ledger))
      delivery::consume(state_->ledger, block_, id_, counter, count);
    if (count != found) memory::add(counter, found - count, Order::none);
  }
  block_.rejoin();
  if (delivery::checked(state_->ledger)) block_.sync();
}

// After await_count() and has_count() have seen the count, they read the lanes once more. So
// messages sent before a count that came direct are unpacked, too (via/lane/lane.hpp, 7).

MESHPOST_FN inline u32 Rank::await_count(AwaitedCount const& awaited, Note const& note) {
  Condition const condition{awaited.counter, awaited.count};
  u32 found = 0;
  if (!uses_lanes()) [[likely]] {
    block_.await(condition, note, state_->command_queue);
    return found;
  }
#if defined(__CUDA_ARCH__)
  found = block_.await_by_warp<detail::LanePoll>(awaited, note, state_->command_queue);
#else
  for (bool held = false; !held;) {
    block_.await(condition, note,
                 state_->command_queue);  // ends early when a message has come by lane
    held = block_.any(thread() == 0 && holds(condition, memory::load_acquire(awaited.counter)));
    via::lane::read(*this);
  }
#endif
  return found;
}

MESHPOST_FN inline bool Rank::has_count(AwaitedCount const& awaited, u32& found) {
  found = 0;
#if defined(__CUDA_ARCH__)
  if (uses_lanes()) {
    bool held = false;
    if (thread() < 32) {
      detail::LanePoll poll(awaited);
      held = poll.drain();
      if (!held) poll.commit();
      found = poll.matched();
      poll.keep();
    }
    return block_.any(held);
  }
#endif
  via::lane::read(*this);
  bool const held = thread() == 0 &&
                    holds({awaited.counter, awaited.count}, memory::load_acquire(awaited.counter));
  if (!block_.any(held)) return false;
  via::lane::read(*this);
  return true;
}

MESHPOST_FN inline void Rank::check_wait(Operation operation, WindowInfo const& info, Tag tag,
                                         u32 count) {
  check_window(operation, info);
  check_tag(Subject(operation, info.number), info.tags, tag);
  if (count > WindowInfo::most_awaited) [[unlikely]]
    fail(Subject(operation, info.number), Fault::argument, count, 0, WindowInfo::most_awaited,
         "the count");
}

MESHPOST_FN inline void Rank::await_and_consume(AwaitedCount const& awaited, Note const& note) {
  Traced const traced(*this, note.operation, note.expected, note.window, note.tag);
  block_.step(hooks::Step::wait_begin);
  u32 const found = await_count(awaited, note);
  if (awaited.count != 0 || found != 0) consume(awaited.counter, awaited.count, found);
}

template <class T>
MESHPOST_FN void Rank::wait(Window<T> const& window, Tag tag, u32 count, RankId expected) {
  WindowInfo const& info = window.info();
  block_.tick();
  check_wait(Operation::wait, info, tag, count);
  await_and_consume({.counter = own(info).counters + tag.value,
                     .count = count,
                     .counter_part = info.counter_part},
                    {Operation::wait, info.number, tag.value, count, expected});
}

template <class T>
MESHPOST_FN bool Rank::test(Window<T> const& window, Tag tag, u32 count) {
  WindowInfo const& info = window.info();
  block_.tick(false);
  check_wait(Operation::test, info, tag, count);
  u32* const counter = own(info).counters + tag.value;
  u32 found = 0;
  if (!has_count({.counter = counter, .count = count, .counter_part = info.counter_part}, found)) {
    block_.asked_in_vain({Operation::test, info.number, tag.value, count}, state_->command_queue);
    block_.yield();  // the rank that will notify may share this rank's worker
    return false;
  }
  block_.tick();
  if (count != 0 || found != 0) consume(counter, count, found);
  return true;
}

namespace detail {
template <class T>
MESHPOST_FN constexpr WordType word_type() {
  if constexpr (same<T, float>) return WordType::f32_;
  else if constexpr (same<T, double>) return WordType::f64_;
  else if constexpr (sizeof(T) == 4) return T(-1) < T(0) ? WordType::i32_ : WordType::u32_;
  else return T(-1) < T(0) ? WordType::i64_ : WordType::u64_;
}
}  // namespace detail

template <class T>
MESHPOST_FN void Rank::wait_until(LocalSpan<T> word, Compare compare, NonDeduced<T> value,
                                  RankId expected) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "wait_until polls a word of 4 or 8 bytes");
  block_.tick();
  check_source(Operation::wait_until, word);
  if (word.size() == 0) fail(Operation::wait_until, Fault::size, 1, 0);
  if (reinterpret_cast<u64>(word.data()) % sizeof(T) != 0)
    fail(Operation::wait_until, Fault::alignment, reinterpret_cast<u64>(word.data()), sizeof(T));
  Traced const traced(*this, Operation::wait_until, expected);
  block_.await({word.data(), bits_of(value), detail::word_type<T>(), compare},
               {Operation::wait_until, 0, 0, 0, expected}, state_->command_queue);
  // Messages that the word's sender sent by lane before it are unpacked into the window now
  // (via/lane/lane.hpp, 7). A register says if there are lanes.
  via::lane::read(*this);
  if (delivery::checked(state_->ledger)) {
    if (thread() == 0) delivery::wait_until(state_->ledger, block_, word.data());
    block_.sync();
  }
}

}  // namespace meshpost
