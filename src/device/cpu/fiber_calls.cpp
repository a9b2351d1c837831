// The calls of a rank on a CPU device: it waits, meets its other threads, fails.
#include <algorithm>

#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {
namespace {

Fiber& self(void* fiber) { return *static_cast<Fiber*>(static_cast<FiberView*>(fiber)); }

// Unwinding frees what the kernel holds. Nobody else may use that from here on.
[[noreturn]] void unwind(Fiber& fiber) {
  std::atomic_ref(fiber.rank->report().left).store(1, std::memory_order_release);
  fiber.launch->withdraw();
  throw Unwind{};
}

// Suspends the fiber until its condition holds or the run is poisoned. Without a condition it
// continues soon.
void suspend(Fiber& fiber) {
  fiber.context.switch_to(fiber.worker->context);
  if (fiber.launch->poisoned()) unwind(fiber);
}

void leave_condition(Fiber& fiber, Condition const& condition) {
  fiber.value.store(condition.value, std::memory_order_relaxed);
  fiber.type.store(condition.type, std::memory_order_relaxed);
  fiber.compare.store(condition.compare, std::memory_order_relaxed);
  fiber.word.store(condition.word, std::memory_order_release);
}

}  // namespace

void fiber_yield(void* fiber) { suspend(self(fiber)); }

void fiber_sync(void* fiber) {
  Fiber& me = self(fiber);
  RankFibers& rank = *me.rank;
  u32 const generation = rank.generation.load(std::memory_order_relaxed);
  // The last fiber to arrive has acquired what all others released. It releases that with the new
  // generation.
  if (rank.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == rank.threads) {
    rank.arrived.store(0, std::memory_order_relaxed);
    rank.votes[(generation + 1) % 2].store(
        0, std::memory_order_relaxed);  // all have read it: they have arrived
    rank.generation.store(generation + 1, std::memory_order_release);
    return;
  }
  leave_condition(me, {&rank.generation, generation, WordType::u32_, Compare::not_equal});
  // If all have arrived, each continues, even if the run was poisoned meanwhile. The first may have
  // told others already that the rank has arrived.
  while (rank.generation.load(std::memory_order_acquire) == generation) {
    me.context.switch_to(me.worker->context);
    if (rank.generation.load(std::memory_order_acquire) == generation && me.launch->poisoned())
      unwind(me);
  }
}

bool fiber_any(void* fiber, bool yes) {
  RankFibers& rank = *self(fiber).rank;
  auto& votes = rank.votes[rank.generation.load(std::memory_order_relaxed) % 2];
  if (yes) votes.store(1, std::memory_order_relaxed);
  fiber_sync(fiber);
  return votes.load(std::memory_order_relaxed) != 0;
}

void fiber_await(void* fiber, Condition const& condition, Note const& note) {
  Fiber& me = self(fiber);
  if (me.launch->poisoned()) unwind(me);
  u32 const bytes = width(condition.type);
  if (holds(condition, memory::load_bits_acquire(condition.word, bytes))) return;
  RankReport& report = me.rank->report();
  report.note = note;
  report.condition = condition;
  store_state(report, RankState::waiting);
  me.takes_news.store(note.operation == Operation::wait && me.launch->may_have_news(),
                      std::memory_order_relaxed);
  do {
    leave_condition(me, condition);
    suspend(me);
  } while (!holds(condition, memory::load_bits_acquire(condition.word, bytes)) &&
           !me.launch->has_news(me));
  me.takes_news.store(false, std::memory_order_relaxed);
  store_state(report, RankState::running);
}

u64 fiber_await_others(void* fiber, Condition const& condition, u32 bytes, RunStage stage) {
  u32 const poison = Control::ends(stage);
  Fiber& me = self(fiber);
  if (me.launch->poison() >= poison) unwind(me);
  store_state(me.rank->report(), RankState::ended);
  me.heeds.store(poison, std::memory_order_relaxed);
  u64 bits = 0;
  while (!holds(condition, bits = memory::load_bits_acquire(condition.word, bytes))) {
    leave_condition(me, condition);
    me.context.switch_to(me.worker->context);
    if (me.launch->poison() >= poison) unwind(me);
  }
  me.heeds.store(Control::leave, std::memory_order_relaxed);
  store_state(me.rank->report(), RankState::running);
  return bits;
}

void fiber_fail(void* fiber, Subject subject, Fault fault, u64 a, u64 b, u64 c, char const* text) {
  Fiber& me = self(fiber);
  me.launch->record_fault(me, subject, fault, a, b, c, text);
  unwind(me);
}

bool fiber_step(void* fiber, hooks::Step step) {
  Fiber& me = self(fiber);
  for (;;) switch (hooks::ask(step, me.world_rank)) {
      case hooks::Action::proceed: return true;
      case hooks::Action::drop: return false;
      case hooks::Action::delay: fiber_yield(fiber); break;
      case hooks::Action::fail:
        fiber_fail(fiber, Operation::kernel, Fault::hook, 0, 0, 0, hooks::name(step));
    }
}

}  // namespace meshpost::cpu
