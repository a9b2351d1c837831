#pragma once
// Ranks on GPUs: a thread block of a cooperative launch.
#include "meshpost/device/block.hpp"
#include "meshpost/device/cuda/memory_operations.hpp"

namespace meshpost {

MESHPOST_FN inline Dim3 Block::thread_index() const {
  return {threadIdx.x, threadIdx.y, threadIdx.z};
}
MESHPOST_FN inline Dim3 Block::thread_extent() const {
  return {blockDim.x, blockDim.y, blockDim.z};
}
namespace cuda {
MESHPOST_FN inline u32 thread_number() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
}  // namespace cuda
MESHPOST_FN inline u32 Block::thread() const { return cuda::thread_number(); }
MESHPOST_FN inline u32 Block::threads() const { return blockDim.x * blockDim.y * blockDim.z; }
MESHPOST_FN inline Team Block::team() const { return {thread(), threads() < 32 ? threads() : 32}; }
MESHPOST_FN inline void Block::sync() const { __syncthreads(); }
MESHPOST_FN inline void Block::rejoin() const { __syncwarp(); }
MESHPOST_FN inline bool Block::any(bool yes) const { return __syncthreads_or(yes) != 0; }
MESHPOST_FN inline void Block::yield() {}
MESHPOST_FN inline bool Block::step(hooks::Step /*step*/) { return true; }

/// Every thread of the block is here or has left, so the kernel ends for all of them.
MESHPOST_FN inline void Block::leave() {
  asm volatile("exit;");
  __builtin_unreachable();
}

// The following functions are out of line, because a rank seldom calls them. An operation of a rank
// is one warp that goes straight through a few hundred instructions. Fetching these is the cost, so
// the usual path has to be short.
namespace cuda {

/// Number of polls between two looks at the host's word: about a millisecond, and up to four for a
/// rank that does work in between. All ranks of a device look at the same word, and a GPU takes
/// such loads over the bus one after the other.
constexpr u32 polls_a_look = 1024;

/// The host's poison and question, read over PCIe.
MESHPOST_FN inline Control look(Control const* control) {
  u64 bits;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(bits) : "l"(control) : "memory");
  return {static_cast<u32>(bits), static_cast<u32>(bits >> 32)};
}

MESHPOST_FN inline void publish(RankReport volatile* out, Note const& note) {
  out->note.operation = note.operation;
  out->note.window = note.window;
  out->note.tag = note.tag;
  out->note.count = note.count;
  out->note.expected = note.expected;
}

/// Publishes what the rank waits for. The host may believe it for this reason. The fence before the
/// publication orders every notification that this rank sent before "I wait". The fence after the
/// withdrawal orders "I wait no more" before anything the rank does next. So while the host sees a
/// publication, the rank has done nothing since. An answer to question e is a value of the word
/// that was read after e was asked. If all ranks answer the same question and no condition holds,
/// no rank can be the first to continue.
MESHPOST_FN inline void publish_waiting(RankReport volatile* out, Condition const& condition,
                                        Note const& note) {
  __threadfence_system();
  out->condition.word = condition.word;
  out->condition.value = condition.value;
  out->condition.type = condition.type;
  out->condition.compare = condition.compare;
  publish(out, note);
  out->sequence = out->sequence + 1;
  __threadfence_system();
  out->state = static_cast<u32>(RankState::waiting);
}
MESHPOST_FN inline void withdraw(RankReport volatile* out) {
  out->state = static_cast<u32>(RankState::running);
  __threadfence_system();
}
MESHPOST_FN inline void answer(RankReport volatile* out, u32 epoch, u64 bits) {
  out->observed = bits;
  __threadfence_system();
  out->epoch = epoch;
}

/// The slow half of a wait, by a team. It goes on polling, and looks at the host's word every
/// `polls_a_look` polls. It publishes what the rank waits for, and answers the host's question.
/// Returns true if the run was poisoned; then the publication stays, for the host's report.
template <Meanwhile Work>
MESHPOST_COLD bool wait_long(RankReport* report, Control const* control, Work const* meanwhile,
                             Condition condition, Note note, Team team) {
  auto* const out = const_cast<RankReport volatile*>(report);
  u32 const bytes = width(condition.type);
  if (team.first()) publish_waiting(out, condition, note);
  for (;;) {
    Control word{};
    if (team.first_left()) word = look(control);
    if (team.any(word.poison != 0)) {
      if (team.first()) out->left = 1;
      return true;
    }
    bool const asked = team.first() && word.epoch != out->epoch;
#pragma unroll 1
    for (u32 polls = 0; polls < polls_a_look; ++polls) {
      u64 const bits = team.first() ? memory::load_bits_acquire(condition.word, bytes) : 0;
      if (team.any(team.first() && holds(condition, bits))) {
        if (team.first()) withdraw(out);
        return false;
      }
      if (meanwhile->anything()) meanwhile->poll(team);
      if (polls == 0 && asked) answer(out, word.epoch, bits);
    }
  }
}

/// A wait by a team that does work meanwhile; true if the run was poisoned.
template <Meanwhile Work>
MESHPOST_COLD bool wait_and_work(RankReport* report, Control const* control, Work const* meanwhile,
                                 Condition condition, Note note, Team team) {
  u32 const bytes = width(condition.type);
#pragma unroll 1
  for (u32 polls = 0; polls < polls_a_look; ++polls) {
    bool const held =
        team.first() && holds(condition, memory::load_bits_acquire(condition.word, bytes));
    if (team.any(held)) return false;
    meanwhile->poll(team);
  }
  return wait_long(report, control, meanwhile, condition, note, team);
}

/// The same by a warp, for a counter. Arrived notifications are in the counter before the rank
/// answers.
template <class Poll, Meanwhile Work>
MESHPOST_COLD bool wait_long_by_warp(RankReport* report, Control const* control,
                                     Work const* meanwhile, AwaitedCount awaited, Note note) {
  auto* const out = const_cast<RankReport volatile*>(report);
  Condition const condition{awaited.counter, awaited.count};
  Poll poll(awaited);
  Team const team{thread_number(), 32};
  bool const first = team.first();
  if (first) publish_waiting(out, condition, note);
  for (;;) {
    Control word{};
    bool asked = false;
    if (team.first_left()) {
      word = look(control);
      asked = first && word.epoch != out->epoch;
    }
    if (poll.any(word.poison != 0)) {
      if (first) out->left = 1;
      return true;
    }
    if (poll.any(asked)) {
      poll.drain();
      poll.commit();
      if (first) answer(out, word.epoch, memory::load_acquire(awaited.counter));
    }
#pragma unroll 1
    for (u32 polls = 0; polls < polls_a_look; ++polls) {
      bool const holds = poll.once();
      poll.commit();
      if (holds) {
        poll.keep();
        if (first) withdraw(out);
        return false;
      }
      if (meanwhile) meanwhile->poll(team);
    }
  }
}

/// The wait for other devices at a run's begin or end. Such waits are seldom long, so the host is
/// not told at once.
template <Meanwhile Work>
MESHPOST_COLD Block::Awaited await_others(RankReport* report, Control const* control,
                                          Work const* meanwhile, Condition condition, u32 bytes,
                                          RunStage stage) {
  auto* const out = const_cast<RankReport volatile*>(report);
  bool told = false;
  u64 bits;
#pragma unroll 1
  for (u32 polls = 0; !holds(condition, bits = memory::load_bits_acquire(condition.word, bytes));) {
    if (meanwhile->anything()) meanwhile->poll({});
    if (++polls % polls_a_look != 0) continue;
    if (!told) {
      if (stage == RunStage::clean_up) out->all_ended = 1;
      if (stage == RunStage::begin) out->begins = 1;
      __threadfence_system();  // the rank's stores are visible before it counts as ended
      out->state = static_cast<u32>(RankState::ended);
      told = true;
    }
    if (look(control).poison >= Control::ends(stage)) return {bits, false};
  }
  if (told) {
    out->all_ended = 0;
    withdraw(out);
    // Behind the fence in there. The host may still have read "ended" before, and 0 now. Then it
    // asks a rank that is running by then, and which never answers (Watch::question).
    out->begins = 0;
  }
  return {bits, true};
}

/// The multiprocessor's cycles divided by 65536: 32 bits hold 40 hours.
MESHPOST_FN inline u32 clock_beats() {
  u64 cycles;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
  return static_cast<u32>(cycles >> 16);
}
/// Number of these beats between two signs of life: 2^24 cycles, about 10 ms. More frequent signs
/// would cost: if all ranks write to the host every few hundred microseconds, a GPU is 8 % slower.
inline constexpr u32 beats_a_sign = 256;

/// Called in some operations, or when a sign of life is due. It shows the host that the rank makes
/// progress, and now and then checks if the run was poisoned. `asked`: the rank had said that it
/// asks on and on. Called by all threads. The clock brings warps here one by one, so they meet by
/// `ticks` alone, which is equal in all. Returns when this thread found a sign due last.
MESHPOST_COLD inline u32 look_around(RankReport* report, Control const* control, u32 ticks,
                                     u32 progress, u32 last_sign, bool asked) {
  u32 const now = clock_beats();
  bool const due = now - last_sign >= beats_a_sign;
  bool poisoned = false;
  if (thread_number() == 0) {
    auto* const out = const_cast<RankReport volatile*>(report);
    if (asked) out->state = static_cast<u32>(RankState::running);
    if (due) out->progress = progress;
    poisoned = ticks % 1024 == 0 && look(control).poison != 0;
    if (poisoned) out->left = 1;
  }
  if (ticks % 1024 == 0 && __syncthreads_or(poisoned) != 0) asm volatile("exit;");
  return due ? now : last_sign;
}

/// The same by one thread, which finds a sign due, or whose turn it is to look.
struct LookedAlone {
  u32 sign;
  bool poisoned;
};
MESHPOST_COLD inline LookedAlone look_alone(RankReport* report, Control const* control,
                                            u32 progress, u32 last_sign) {
  u32 const now = clock_beats();
  bool const due = now - last_sign >= beats_a_sign;
  auto* const out = const_cast<RankReport volatile*>(report);
  if (due) out->progress = progress;
  bool const poisoned = look(control).poison != 0;
  if (poisoned) out->left = 1;
  return {due ? now : last_sign, poisoned};
}

MESHPOST_COLD inline void publish_asking(RankReport* report, Note note) {
  publish(report, note);
  __threadfence_system();
  const_cast<RankReport volatile*>(report)->state = static_cast<u32>(RankState::asking);
}

/// The end of a rank that used an operation wrongly, or called fail(); by all its threads.
[[noreturn]] MESHPOST_COLD inline void fail_rank(RankReport* out, bool first, Subject subject,
                                                 Fault fault, u64 a, u64 b, u64 c,
                                                 char const* text) {
  __syncthreads();
  if (first) {
    out->subject = subject;
    out->fault = fault;
    out->details[0] = a;
    out->details[1] = b;
    out->details[2] = c;
    copy_text(out->text, sizeof out->text, text);
    __threadfence_system();
    const_cast<RankReport volatile*>(out)->state = static_cast<u32>(RankState::failed);
    __threadfence_system();
  }
  __syncthreads();
  asm volatile("exit;");
  __builtin_unreachable();
}

/// The same, by threads that may be alone: they can't meet the others. Thread 0 may be in a wait
/// and write that into the report. So the fault is written until the host has seen it. Threads that
/// fail together store the same.
[[noreturn]] MESHPOST_COLD inline void fail_thread(RankReport* report, Control const* control,
                                                   Subject subject, Fault fault, u64 a, u64 b,
                                                   char const* text) {
  auto* const out = const_cast<RankReport volatile*>(report);
  do {
    copy_text(report->text, sizeof report->text, text);
    out->subject.operation = subject.operation;
    out->subject.window = subject.window;
    out->fault = fault;
    out->details[0] = a;
    out->details[1] = b;
    __threadfence_system();
    out->state = static_cast<u32>(RankState::failed);
    __threadfence_system();
  } while (look(control).poison == 0);
  asm volatile("exit;");
  __builtin_unreachable();
}

}  // namespace cuda

MESHPOST_FN inline bool Block::poisoned() const { return cuda::look(control_).poison != 0; }

template <Meanwhile Work>
MESHPOST_FN bool Block::await_by_few(Condition const& condition, Note const& note,
                                     Work const& meanwhile) {
  if (meanwhile.anything()) {
    Team const few = team();
    return few.has_me() && cuda::wait_and_work(report_, control_, &meanwhile, condition, note, few);
  }
  if (thread() != 0) return false;
  u32 const bytes = width(condition.type);
  u32 polls = 0;
  // An acquire in every poll costs nothing while the rank waits. A fence afterwards would cost half
  // a microsecond where a fence can't acquire alone (memory::acquire_fence).
#pragma unroll 1
  while (!holds(condition, memory::load_bits_acquire(condition.word, bytes)))
    if (++polls == cuda::polls_a_look)
      return cuda::wait_long(report_, control_, &meanwhile, condition, note, {});
  return false;
}

template <Meanwhile Work>
MESHPOST_FN void Block::await(Condition const& condition, Note const& note, Work const& meanwhile) {
  bool const poisoned = await_by_few(condition, note, meanwhile);
  if (any(poisoned)) leave();  // also hands what thread 0 acquired to the other threads
}

namespace cuda {
/// The quick half of a wait by a warp. Returns what it found, and true if it has seen enough. Out
/// of line: the waits of a kernel share it.
template <class Poll, Meanwhile Work>
MESHPOST_COLD u64 wait_by_warp(Work const* meanwhile, AwaitedCount awaited) {
  Poll poll(awaited);
  bool held = false;
#pragma unroll 1
  for (u32 left = polls_a_look; left != 0 && !(held = poll.once()); --left)
    if (meanwhile) meanwhile->poll({thread_number(), 32});
  if (!held) poll.commit();
  poll.keep();
  return poll.matched() | static_cast<u64>(held) << 32;
}
/// Both halves of the wait. Returns what was found, or `poisoned`.
inline constexpr u32 poisoned = ~u32{0};
template <class Poll, Meanwhile Work>
MESHPOST_FN u32 await_by_warp(RankReport* report, Control const* control, Work const* meanwhile,
                              u32 thread, AwaitedCount const& awaited, Note note) {
  if (awaited.count == 1 && !meanwhile &&
      Poll::poll_fast(thread, awaited.counter, awaited.counter_part))
    return 1;  // which does none
  u64 const found = wait_by_warp<Poll>(meanwhile, awaited);
  if (found >> 32 != 0) return static_cast<u32>(found);
  return wait_long_by_warp<Poll>(report, control, meanwhile, awaited, note) ? poisoned : 0;
}
}  // namespace cuda

template <class Poll, Meanwhile Work>
MESHPOST_FN u32 Block::await_by_warp(AwaitedCount const& awaited, Note const& note,
                                     Work const& meanwhile) {
  u32 found = 0;
  if (thread() < 32)
    found = cuda::await_by_warp<Poll>(
        report_, control_, meanwhile.anything() ? &meanwhile : nullptr, thread(), awaited, note);
  if (any(found == cuda::poisoned)) leave();
  return found;
}

MESHPOST_FN inline void Block::tick(bool progress) {
  ++ticks_;
  if (!progress) ++idle_ticks_;
  if (ticks_ == due_ || cuda::clock_beats() - beat_ >= cuda::beats_a_sign) [[unlikely]]
    look_around(progress);
}

MESHPOST_FN inline bool Block::tick_by_few() {
  if (vain_ != 0) {  // it may have told the host that it only asks
    tick();
    vain_ = 0;
    return false;
  }
  if (thread() != 0) return false;
  ++few_ticks_;
  if (few_ticks_ % 1024 != 0 && cuda::clock_beats() - beat_ < cuda::beats_a_sign) [[likely]]
    return false;
  auto const looked = cuda::look_alone(report_, control_, ticks_ - idle_ticks_ + few_ticks_, beat_);
  beat_ = looked.sign;
  return looked.poisoned;
}

MESHPOST_FN inline void Block::look_around(bool progress) {
  bool const asked = progress && vain_ >= many_tests;
  if (asked) vain_ = 0;
  due_ = vain_ >= many_tests ? ticks_ + 1 : (ticks_ | 1023) + 1;
  beat_ =
      cuda::look_around(report_, control_, ticks_, ticks_ - idle_ticks_ + few_ticks_, beat_, asked);
}

template <Meanwhile Work>
MESHPOST_FN void Block::asked_in_vain(Note const& note, Work const& meanwhile) {
  if (Team const few = team(); meanwhile.anything() && few.has_me()) meanwhile.poll(few);
  if (ticks_ != last_vain_ + 1) vain_ = 0;
  last_vain_ = ticks_;
  if (++vain_ < many_tests) return;
  due_ = ticks_ + 1;
  if (vain_ == many_tests && thread() == 0) cuda::publish_asking(report_, note);
}

// A rank takes back all that it tells the host over the bus: the next run begins without it.
MESHPOST_FN inline void Block::finish() {
  if (vain_ >= many_tests && thread() == 0) cuda::withdraw(report_);
}

template <Meanwhile Work>
MESHPOST_FN Block::Awaited Block::await_others(Condition const& condition, u32 bytes,
                                               RunStage stage, Work const& meanwhile) {
  return cuda::await_others(report_, control_, &meanwhile, condition, bytes, stage);
}

MESHPOST_FN inline void Block::fail(Subject subject, Fault fault, u64 a, u64 b, u64 c,
                                    char const* text) {
  cuda::fail_rank(report_, thread() == 0, subject, fault, a, b, c, text);
}
MESHPOST_FN inline void Block::fail_alone(Subject subject, Fault fault, u64 a, u64 b,
                                          char const* text) const {
  cuda::fail_thread(report_, control_, subject, fault, a, b, text);
}

}  // namespace meshpost
