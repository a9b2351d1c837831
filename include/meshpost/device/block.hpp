#pragma once
#include "meshpost/base/step.hpp"
#include "meshpost/base/types.hpp"
#include "meshpost/device/report.hpp"
#include "meshpost/device/team.hpp"

namespace meshpost {

/// Which earlier stores must be visible to a rank that sees a counter raised.
enum class Order : u32 {
  none,    ///< no stores
  device,  ///< all stores of this rank, to ranks of the same device
  system   ///< all stores of this rank, to every device and the host
};

/// Work that a rank does while it waits. On a GPU its first warp calls poll() between two polls of
/// the awaited word, if anything() is true, or one thread if it waits alone. This may change the
/// word. On a CPU device nobody calls it: the host's threads do such work (LaunchSpec::help).
template <class T>
concept Meanwhile = requires(T const& work, Team team) {
  work.anything() ? 1 : 0;
  work.poll(team);
};

/// A rank as its machine sees it: threads that can meet, wait together and leave together. It is a
/// CUDA thread block, or fibers of one worker thread. `device/cpu/block.hpp` and
/// `device/cuda/block.hpp` define the functions; nvcc compiles a kernel once with each.
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

  /// The threads that work for all of them, where few are enough.
  MESHPOST_FN Team team() const;
  /// Returns when all threads of the rank have called it. After it all of them see what any of them
  /// stored before.
  MESHPOST_FN void sync() const;
  /// GPUs, behind work of a few threads: the threads of each warp go on together. A compiler does
  /// not always see to that, and then a warp goes through all that follows twice.
  MESHPOST_FN void rejoin() const;
  /// sync(); true if any thread passed true.
  MESHPOST_FN bool any(bool yes) const;

  /// Returns once `condition` holds. The rank then sees what was stored before the word was
  /// written. Leaves if the run was poisoned. The report shows `note` meanwhile. A wait for a
  /// notification may also return if LaunchSpec::has_news is true.
  template <Meanwhile Work>
  MESHPOST_FN void await(Condition const& condition, Note const& note, Work const& meanwhile);
  /// GPUs: the first half of await(). At least the first warp calls it, all of it together. Returns
  /// true if the run was poisoned. Then all threads are to meet (any()) and leave().
  template <Meanwhile Work>
  MESHPOST_FN bool await_by_few(Condition const& condition, Note const& note,
                                Work const& meanwhile);
  /// Ends this rank, because the run was poisoned.
  [[noreturn]] MESHPOST_FN void leave();
  /// await() out of line: for conditions that most ranks need not wait for, and for several waits
  /// to share.
  template <Meanwhile Work>
  MESHPOST_FN void await_out_of_line(Condition const& condition, Note const& note,
                                     Work const& meanwhile) const {
    await_of(*this, condition, note, meanwhile);
  }
  /// Called once for each operation. It shows that the rank makes progress (unless it only asks
  /// again and again). Now and then it checks if the run was poisoned.
  MESHPOST_FN void tick(bool progress = true);
  /// GPUs: tick() for an operation that the first warp carries out, while the others only meet it.
  /// All threads call it; usually thread 0 alone does anything. Returns true in thread 0, and only
  /// there, if it has seen that the run was poisoned. Then all threads are to meet (any()) and
  /// leave().
  MESHPOST_FN bool tick_by_few();
  /// Called once for each test that found nothing. After many such tests on end, and nothing else,
  /// the rank tells the host so. It makes no more progress than a rank that waits.
  template <Meanwhile Work>
  MESHPOST_FN void asked_in_vain(Note const& note, Work const& meanwhile);
  /// Called at the end of the kernel: takes back what the rank has told the host about itself.
  MESHPOST_FN void finish();
  /// The result of await_others(): the word's bits, and true if the condition holds for them.
  struct Awaited {
    u64 bits;
    bool held;
  };
  /// Called by one thread, before the kernel or after its end: returns once `condition` holds for a
  /// word of 4 or 8 bytes. Meanwhile the host counts the rank as ended. If the run was poisoned so
  /// that the meeting ends (Control::ends), it returns that the condition does not hold. On a CPU
  /// device the rank leaves.
  template <Meanwhile Work>
  MESHPOST_FN Awaited await_others(Condition const& condition, u32 bytes, RunStage stage,
                                   Work const& meanwhile);
  /// Lets other ranks that share the processor with this one run, and leaves if the run was
  /// poisoned. Does nothing on a GPU.
  MESHPOST_FN void yield();
  /// GPUs, for a thread that polls alone: true if the run was poisoned. The thread can't leave
  /// without the rank's other threads. Elsewhere false: yield() leaves.
  MESHPOST_FN bool poisoned() const;
  /// Ends this rank; reports `fault` unless the report already has one.
  [[noreturn]] MESHPOST_FN void fail(Subject subject, Fault fault, u64 a, u64 b, u64 c,
                                     char const* text);
  /// The same, by threads that may be alone. The rank's other threads leave when they next look, or
  /// end.
  [[noreturn]] MESHPOST_FN void fail_alone(Subject subject, Fault fault, u64 a, u64 b = 0,
                                           char const* text = nullptr) const;
  /// True if the protocol executes `step`. Tests may delay it, drop it, or end the rank here.
  MESHPOST_FN bool step(hooks::Step step);

  MESHPOST_FN RankReport& report() const { return *report_; }
  MESHPOST_FN void* fiber() const { return fiber_; }
  /// The same rank's block as another of its threads sees it.
  MESHPOST_FN Block for_thread(void* fiber) const {
    Block copy = *this;
    copy.fiber_ = fiber;
    return copy;
  }

  /// GPUs: await() for a counter and for more than it says. Warp 0 makes a Poll(awaited) and calls
  /// its once() again and again. Returns what the Poll found beyond the counter.
  template <class Poll, Meanwhile Work>
  MESHPOST_FN u32 await_by_warp(AwaitedCount const& awaited, Note const& note,
                                Work const& meanwhile);

 private:
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
  // All are equal in all threads, except few_ticks_ and beat_.
  u32 ticks_ = 0;
  u32 idle_ticks_ = 0;  // of those, ticks without progress
  u32 few_ticks_ = 0;   // GPUs: those of tick_by_few(), in thread 0 alone
  u32 due_ = 1;         // GPUs: the next tick at which to look around
  u32 vain_ = 0;        // consecutive tests that found nothing
  u32 last_vain_ = 0;   // the tick of the last such test
  u32 beat_ = 0;        // GPUs: clock when a sign of life was last due
};

}  // namespace meshpost

#if defined(__CUDA_ARCH__)
#include "meshpost/device/cuda/block.hpp"
#else
#include "meshpost/device/cpu/block.hpp"
#endif
