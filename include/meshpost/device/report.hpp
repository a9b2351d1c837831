#pragma once
#include "meshpost/device/condition.hpp"

// Reports of ranks to the host, and the host's word to all ranks of a device. Both lie in memory
// that host and kernel can read and write at any time (pinned on GPUs). So neither needs a driver
// call.

namespace meshpost {

enum class RankState : u32 {
  absent,
  running,
  waiting,
  ended,
  failed,
  asking  ///< runs, but only to test a counter again and again
};

/// The operation that a rank is in, for reports and timelines.
enum class Operation : u32 {
  none,
  put,
  put_notify,
  notify,
  get,
  flush,
  publish,
  wait,
  test,
  put_value,
  wait_until,
  barrier,
  broadcast,
  reduce,
  all_reduce,
  reduce_scatter,
  all_gather,
  scratch,
  log,
  mark,
  timer,
  fail,
  kernel,
  local,
  id,
  size,
  world_rank,
  roles,
  count
};

/// An operation on a window, in errors.
struct Subject {
  Operation operation = Operation::none;
  u32 window = 0;  ///< its number; 0: none

  Subject() = default;
  MESHPOST_FN constexpr Subject(Operation of, u32 on_window = 0)
      : operation(of), window(on_window) {}
};

/// The reason why a rank ended itself.
enum class Fault : u32 {
  none,
  failed,          ///< fail() was called; `text` says why
  threw,           ///< an exception left the kernel (CPU); `text` is its what()
  target,          ///< rank `details[0]` of a communicator of `details[1]`
  tag,             ///< tag `details[0]` of `details[1]`
  range,           ///< elements [details[0], +details[1]) of a part of details[2]
  size,            ///< a source of details[0] elements for a target of details[1]
  span,            ///< a subspan that leaves its span
  foreign_window,  ///< a window of world details[0] in a run of world details[1]
  unreachable,     ///< rank details[0] is not in the window's communicator as seen from here
  alignment,       ///< address details[0] for a word of details[1] bytes
  null_pointer,    ///< a null source or target of details[0] elements
  scratch,         ///< scratch of details[0] bytes asked for, details[1] given at launch
  timers,          ///< more than details[0] timer intervals, or a stop without a start
  delivery,        ///< bytes used before they were delivered; `text` says which (CPU, checked mode)
  hook,            ///< a test's hook asked for it
  argument,        ///< argument `text` is details[0]; it may be details[1] to details[2]
  source,  ///< a source of details[1] bytes, details[0] after the beginning of a part of details[2]
  misuse,  ///< an operation that is not allowed here; `text` says why
  layout,  ///< a layout that is invalid
  extents,     ///< in direction details[0]: details[1] elements at the target, details[2] at source
  reach,       ///< a layout that needs details[0] elements of a `text` span of details[1]
  interleave,  ///< a target's layout of strides `details` names a place twice, or may
  freed_window  ///< window `details[0]`, which was freed
};

/// The subject of an operation; the part of a report that a waiting rank publishes.
struct Note {
  Operation operation = Operation::none;
  u32 window = 0;  ///< the window's number, or the communicator's for barriers
  u32 tag = 0;
  u32 count = 0;           ///< notifications wanted
  u32 expected = no_rank;  ///< world rank that is expected to notify, if the kernel said so

  static constexpr u32 no_rank = ~0u;
};

/// One rank's report. `state`, `sequence`, `epoch` and `progress` are polled by the host.
struct alignas(128) RankReport {
  u32 state;     ///< RankState
  u32 sequence;  ///< grows by one each time a wait is published
  u32 epoch;     ///< last question of the host that the waiting rank has answered
  u32 progress;  ///< grows while the rank does things
  u64 observed;  ///< the awaited word's bits at that answer
  Condition condition;
  Note note;        ///< of the last wait
  Subject subject;  ///< of the fault: another thread of the rank may still publish a wait
  Fault fault;
  u32 left;  ///< 1: the rank left a run that was poisoned, or in which others run another kernel
  u32 all_ended;  ///< GPUs: 1 while this rank, in a long wait, knows that its device's ranks have
  u32 begins;     ///< GPUs: 1 while this rank, in a long wait, has not begun the run
  u64 details[3];
  char text[200];
};

/// The reason why a rank awaits the other ranks of its run.
enum class RunStage : u32 {
  begin,
  end,
  clean_up  ///< after the end, which all ranks of its device have reached
};

/// The host's word to all ranks of a device: one 8-byte load fetches it.
struct alignas(8) Control {
  /// 0, or `leave`: every rank leaves at its next look. Ranks that have come to the run's end leave
  /// only with `leave_the_end`: others may be sure already that the run ends well.
  u32 poison;
  static constexpr u32 leave = 1, leave_the_end = 2;
  MESHPOST_FN static constexpr u32 ends(RunStage stage) {
    return stage == RunStage::begin ? leave : leave_the_end;
  }
  u32 epoch;  ///< a question to waiting ranks: do you still wait?
};

/// Copies at most capacity - 1 characters and ends them with 0.
MESHPOST_FN inline void copy_text(char* target, u32 capacity, char const* source) {
  u32 i = 0;
  for (; source && source[i] && i + 1 < capacity; ++i) target[i] = source[i];
  target[i] = 0;
}

}  // namespace meshpost
