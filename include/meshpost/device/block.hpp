#pragma once
#include "meshpost/base/step.hpp"
#include "meshpost/base/types.hpp"
#include "meshpost/device/report.hpp"

namespace meshpost {

/// How far the stores before a raised counter must have got.
enum class Order : u32 {
  none,    ///< nothing has to be seen with it
  device,  ///< everything this rank stored, for ranks of the same device
  system   ///< everything this rank stored, for every device and the host
};

/// Work that a rank does while it waits. On a GPU one of its threads calls poll() between two polls
/// of the awaited word, if anything() is true; this may change the word. On a CPU device nobody
/// calls it, for the host's threads do such work (LaunchSpec::help).
template <class T>
concept Meanwhile = requires(T const& work) {
  work.anything() ? 1 : 0;
  work.poll();
};

/// A rank as its machine sees it: threads that can meet, wait together and leave together. A CUDA
/// thread block, or fibers of one worker thread. `device/cpu/block.hpp` and `device/cuda/block.hpp`
/// define the functions; nvcc compiles a kernel once with each.
///
/// Unless said otherwise all threads of the rank call each function, with equal arguments.
class Block {
 public:
  MESHPOST_FN Block(void* fiber, RankReport* report, Control const* control)
      : fiber_(fiber), report_(report), control_(control) {}

  /// This thread's number in the rank, x fastest. Any thread may call it alone.
  MESHPOST_FN u32 thread() const;
  MESHPOST_FN u32 threads() const;
  MESHPOST_FN Dim3 thread_index() const;
  MESHPOST_FN Dim3 thread_extent() const;

  /// Returns when all threads of the rank have called it; what they stored before is seen by all
  /// after it.
  MESHPOST_FN void sync() const;
  /// sync(), and whether any thread said yes.
  MESHPOST_FN bool any(bool yes) const;

  /// Returns once `condition` holds, and the rank then sees what was stored before the word was
  /// written. Leaves, if the run was poisoned. `note` is what the report says meanwhile. In a wait
  /// for a notification it may also return when LaunchSpec::has_news.
  template <Meanwhile Work>
  MESHPOST_FN void await(Condition const& condition, Note const& note, Work const& meanwhile);
  /// The same out of line: for what most ranks never wait for, and for several waits to share.
  template <Meanwhile Work>
  MESHPOST_FN void await_out_of_line(Condition const& condition, Note const& note,
                                     Work const& meanwhile) const {
    await_of(*this, condition, note, meanwhile);
  }
  /// Once for each operation: shows that the rank gets on (unless it only asks again and again),
  /// and now and then looks whether the run was poisoned.
  MESHPOST_FN void tick(bool progress = true);
  /// Once for each test that found nothing. A rank that asked in vain many times on end, and did
  /// nothing else, says so to the host: it gets on no more than one that waits.
  template <Meanwhile Work>
  MESHPOST_FN void asked_in_vain(Note const& note, Work const& meanwhile);
  /// The kernel has come to its end: takes back what the rank has told the host of itself.
  MESHPOST_FN void finish();
  /// What await_others() has seen: the word's bits, and whether they are what was awaited.
  struct Awaited {
    u64 bits;
    bool held;
  };
  /// By one thread, before the kernel or behind its end: returns once `condition` holds for a word
  /// of 4 or 8 bytes. Meanwhile the host takes the rank for one that has ended. If the run was
  /// poisoned so that the meeting ends (Control::ends): it has not held, or on a CPU leaves.
  template <Meanwhile Work>
  MESHPOST_FN Awaited await_others(Condition const& condition, u32 bytes, RunStage stage,
                                   Work const& meanwhile);
  /// Lets others run who share the processor with this rank, and leaves if the run was poisoned;
  /// nothing on a GPU.
  MESHPOST_FN void yield();
  /// GPUs, for a thread that polls alone: whether the run was poisoned. It can't leave without the
  /// rank's other threads. Elsewhere false: yield() leaves.
  MESHPOST_FN bool poisoned() const;
  /// Ends this rank; reports `fault` unless the report has one.
  [[noreturn]] MESHPOST_FN void fail(Operation operation, Fault fault, u64 a, u64 b, u64 c,
                                     char const* text);
  /// The same by threads that may be alone. Others of the rank leave when they look, or end.
  [[noreturn]] MESHPOST_FN void fail_alone(Operation operation, Fault fault, u64 a,
                                           u64 b = 0) const;
  /// Whether the protocol goes on with `step`: tests may delay it, drop it, or end the rank here.
  MESHPOST_FN bool step(hooks::Step step);

  MESHPOST_FN RankReport& report() const { return *report_; }
  MESHPOST_FN void* fiber() const { return fiber_; }
  /// The same rank's block as another of its threads sees it.
  MESHPOST_FN Block for_thread(void* fiber) const {
    Block copy = *this;
    copy.fiber_ = fiber;
    return copy;
  }

  /// GPUs: await() for a counter and more than it says. Warp 0 makes a Poll(counter, part, count)
  /// and asks it once() after once(); returns what it found that the counter does not say.
  template <class Poll, Meanwhile Work>
  MESHPOST_FN u32 await_by_warp(u32* counter, u32 part, u32 count, Note const& note,
                                Work const& meanwhile);

 private:
  [[noreturn]] MESHPOST_FN void leave();
  MESHPOST_FN void look_around(bool progress);
  template <Meanwhile Work>
  MESHPOST_COLD static void await_of(Block block, Condition condition, Note note,
                                     Work const& meanwhile) {
    block.await(condition, note, meanwhile);
  }
  static constexpr u32 many_tests = 1024;

  void* fiber_;  // the CPU scheduler's fiber; null on a GPU
  RankReport* report_;
  Control const* control_;
  // Equal in all threads but for beat_.
  u32 ticks_ = 0;
  u32 idle_ticks_ = 0;  // of those, without progress
  u32 due_ = 1;         // GPUs: at which tick to look around
  u32 vain_ = 0;        // tests on end that found nothing
  u32 last_vain_ = 0;   // the tick of the last of them
  u32 beat_ = 0;        // GPUs: clock when a sign of life was last due
};

}  // namespace meshpost

#if defined(__CUDA_ARCH__)
#include "meshpost/device/cuda/block.hpp"
#else
#include "meshpost/device/cpu/block.hpp"
#endif
