#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/rank.hpp"

namespace meshpost {

// A count that is consumed is taken off the counter itself, so a wait reads one word. Only the rank
// that owns the counter takes off, and never more than it has seen there.
MESHPOST_FN inline void Rank::consume(u32* counter, u32 count) {
  block_.step(hooks::Step::wait_consume);
  if (thread() == 0) {
    if (delivery::checked(state_->ledger))
      delivery::consume(state_->ledger, block_, id_, counter, count);
    memory::add(counter, 0u - count, Order::none);
  }
  if (delivery::checked(state_->ledger)) block_.sync();
}

// An await ends early when something has come by lane. Once the count is seen, what was sent before
// what has come directly goes in, too (rma/detail/lanes.hpp, 7).
MESHPOST_FN inline bool Rank::holds_with_lanes(Condition const& condition) {
  bool const mine = thread() == 0 &&
                    holds(condition, memory::load_acquire(static_cast<u32 const*>(condition.word)));
  bool const held = block_.any(mine);
  take_lanes();
  return held;
}

template <class T>
MESHPOST_FN void Rank::wait(Window<T> const& window, Tag tag, u32 count, RankId expected) {
  WindowInfo const& info = window.info();
  block_.tick();
  if (info.world != state_->world)
    fail(Operation::wait, Fault::foreign_window, info.world, state_->world);
  check_tag(Operation::wait, info.tags, tag);
  if (count > 1u << 30) fail(Operation::wait, Fault::range, 0, count, 1u << 30);
  Traced const traced(*this, Operation::wait, expected, info.number, tag.value);
  block_.step(hooks::Step::wait_begin);
  u32* const counter = own(info).counters + tag.value;
  Condition const condition{counter, count, WordType::counter, Compare::greater_equal};
  Note const note{Operation::wait, info.number, tag.value, count, expected};
  do block_.await(condition, note);
  while (uses_lanes() && !holds_with_lanes(condition));
  if (count != 0) consume(counter, count);
}

template <class T>
MESHPOST_FN bool Rank::test(Window<T> const& window, Tag tag, u32 count) {
  WindowInfo const& info = window.info();
  block_.tick(false);
  if (info.world != state_->world)
    fail(Operation::test, Fault::foreign_window, info.world, state_->world);
  check_tag(Operation::test, info.tags, tag);
  if (count > 1u << 30) fail(Operation::test, Fault::range, 0, count, 1u << 30);
  u32* const counter = own(info).counters + tag.value;
  take_lanes();
  bool const mine = thread() == 0 && holds({counter, count}, memory::load_acquire(counter));
  if (!block_.any(mine)) {
    block_.asked_in_vain({Operation::test, info.number, tag.value, count});
    block_.yield();  // whoever will notify may share this rank's worker
    return false;
  }
  block_.tick();
  take_lanes();  // what was sent before what has come directly
  if (count != 0) consume(counter, count);
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
MESHPOST_FN void Rank::wait_until(LocalSpan<T> word, Compare compare, NonDeduced<T> value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "wait_until polls a word of 4 or 8 bytes");
  block_.tick();
  check_source(Operation::wait_until, word);
  if (word.size() == 0) fail(Operation::wait_until, Fault::size, 1, 0);
  if (reinterpret_cast<u64>(word.data()) % sizeof(T) != 0)
    fail(Operation::wait_until, Fault::alignment, reinterpret_cast<u64>(word.data()), sizeof(T));
  Traced const traced(*this, Operation::wait_until);
  block_.await({word.data(), bits_of(value), detail::word_type<T>(), compare},
               {Operation::wait_until, 0, 0, 0});
}

}  // namespace meshpost
