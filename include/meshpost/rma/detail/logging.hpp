#pragma once
#include "meshpost/rma/rank.hpp"

// Logs, marks, timers, and other functions that a rank needs no other rank for.

namespace meshpost {

template <class Work>
MESHPOST_FN void Rank::each(u64 count, Work&& work) const {
  u32 const stride = threads();
  if (stride == 1) {  // a plain loop, which compilers vectorise
    for (u64 i = 0; i < count; ++i) work(i);
  } else {
    for (u64 i = thread(); i < count; i += stride) work(i);
  }
}

template <class T>
MESHPOST_FN LocalSpan<T> Rank::scratch() {
  return {static_cast<T*>(scratch_), state_->scratch / sizeof(T)};
}

template <class T>
MESHPOST_FN LocalSpan<T> Rank::scratch(u64 count) {
  if (count > state_->scratch / sizeof(T))
    block_.fail_alone(Operation::scratch, Fault::scratch, count * sizeof(T), state_->scratch);
  return {static_cast<T*>(scratch_), count};
}

template <class... Arguments>
MESHPOST_FN void Rank::log(char const* text, Arguments... arguments) {
  static_assert(sizeof...(arguments) <= LogRecord::most_arguments, "log takes at most 8 arguments");
  block_.tick();
  if (thread() == 0) {
    LogRecord line;
    for (u32 i = 0; i < LogRecord::most_arguments; ++i) line.types[i] = LogRecord::Type::none;
    u32 i = 0;
    (detail::pack(line, i++, arguments), ...);
    copy_text(line.text, sizeof line.text, text);
    send(line);
  }
}

MESHPOST_FN inline void Rank::send(LogRecord const& line) {
  LogRing const& ring = state_->log;
  u32 mine = 0;
  ring.claim(mine, [&] { return block_.yield(), true; });  // the host never stops reading
  LogRecord& record = ring.at(mine);
  record.rank = id_;
  for (u32 i = 0; i < LogRecord::most_arguments; ++i) {
    record.types[i] = line.types[i];
    if (line.types[i] != LogRecord::Type::none) record.values[i] = line.values[i];
  }
  copy_text(record.text, sizeof record.text, line.text);
  ring.publish(mine);
}

MESHPOST_FN inline void Rank::mark(char const* name) {
  if (!state_->trace.events || thread() != 0) return;
  auto* const event = state_->trace.add(local_id_);
  if (!event) return;
  *event = {memory::clock_ns(), 0, Operation::mark, Note::no_rank, 0, 0, 0, {}};
  event->end = event->begin;
  copy_text(event->name, sizeof event->name, name);
}

/// The host reads times at the run's end only if some were noted.
MESHPOST_COLD inline void Rank::note_time(RunState const& state, u32 local_rank, u32 interval,
                                          u32 end, u64 now) {
  state.timers.interval(local_rank, interval)[end] = now;
  memory::store_relaxed(&detail::words_on(state, state.device)->timed, 1);
}

MESHPOST_FN inline void Rank::start_timer() {
  block_.tick();
  if (intervals_ == TimerBuffer::capacity)
    fail(Operation::timer, Fault::timers, TimerBuffer::capacity);
  if (thread() == 0) note_time(*state_, local_id_, intervals_, 0, memory::clock_ns());
  ++intervals_;
}

MESHPOST_FN inline void Rank::stop_timer() {
  block_.tick();
  if (intervals_ == 0) fail(Operation::timer, Fault::timers);
  block_.sync();
  if (thread() == 0) note_time(*state_, local_id_, intervals_ - 1, 1, memory::clock_ns());
}

MESHPOST_FN inline void Rank::fail(char const* reason) {
  block_.fail_alone(Operation::fail, Fault::failed, 0, 0, reason);
}

}  // namespace meshpost
