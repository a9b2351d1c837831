#pragma once
#include "meshpost/base/span.hpp"
#include "meshpost/device/strided_copy.hpp"
#include "meshpost/rma/combine.hpp"
#include "meshpost/rma/detail/via/sender.hpp"
#include "meshpost/rma/prepared.hpp"
#include "meshpost/rma/strided.hpp"

namespace meshpost {

namespace detail {
template <class T>
struct Vectors;
}  // namespace detail

/// One rank of a run, as its kernel sees it: it sends, receives and waits.
///
/// "All threads" below means all threads of the rank, with equal arguments, as for __syncthreads().
/// An operation with a bad argument ends the run. World::run then throws an error that names the
/// rank, the operation, the value and what would be right. docs/architecture.md has the rules of
/// delivery, order and release.
class Rank : private via::Sender {
 public:
  /// `lanes`: false if the run has none, so that the compiler leaves out their code.
  MESHPOST_FN Rank(RunState const& state, Block block, u32 local_rank, void* scratch,
                   bool lanes = true)
      : Sender(state, block, local_rank, lanes),
        scratch_(scratch),
        world_(state.world + zero_),
        ranks_(state.ranks + zero_),
        ranks_per_device_(state.ranks_per_device + zero_),
        traced_((state.trace.events != nullptr) + zero_),
        device_(state.device + zero_),
        first_freed_(state.freed.first + zero_),
        freed_span_(state.freed.span + zero_),
        heap_(state.heap + zero_),
        reciprocal_(state.reciprocal + zero_) {}

  // -- this rank: any thread may call these alone
  MESHPOST_FN RankId id() const { return {id_}; }              ///< number in the world
  MESHPOST_FN u32 size() const { return state_->ranks; }       ///< ranks of the world
  MESHPOST_FN RankId local_id() const { return {local_id_}; }  ///< number on this device
  MESHPOST_FN u32 local_size() const { return state_->ranks_per_device; }
  MESHPOST_FN u32 device() const { return state_->device; }  ///< number of this device in the world
  MESHPOST_FN u32 device_count() const { return state_->devices; }
  MESHPOST_FN u32 device_of(RankId rank) const { return state_->device_of(rank); }
  /// Number in my group; Note::no_rank: I am in none.
  MESHPOST_FN RankId id(Communicator const& communicator) const;
  /// Ranks of my group; 0: I am in none.
  MESHPOST_FN u32 size(Communicator const& communicator) const;
  /// Number in the world of rank `rank` of my group.
  MESHPOST_FN RankId world_rank(Communicator const& communicator, RankId rank) const;
  MESHPOST_FN Communicator device_communicator() const { return state_->device_communicator; }

  // -- threads of the rank
  MESHPOST_FN u32 thread() const { return block_.thread(); }  ///< x fastest
  MESHPOST_FN u32 threads() const { return block_.threads(); }
  MESHPOST_FN Dim3 thread_index() const { return block_.thread_index(); }
  MESHPOST_FN Dim3 thread_extent() const { return block_.thread_extent(); }
  /// Waits until all threads of the rank have called it.
  /// Called by: all threads. Order: their stores before it are seen by all of them behind it.
  MESHPOST_FN void sync() const { block_.sync(); }
  /// True for all threads of the rank if any of them says so.
  /// Called by: all threads. Order: as sync().
  MESHPOST_FN bool any(bool yes) const { return block_.any(yes); }
  /// Calls work(i) for i from 0 to count - 1, each by one thread.
  /// Called by: all threads. Order: none; call sync() before other threads use the results.
  template <class Work>
  MESHPOST_FN void each(u64 count, Work&& work) const;
  /// The rank's scratch memory (GPU: shared memory) of Launch::scratch bytes, not initialised. Any
  /// thread may call it alone.
  template <class T>
  MESHPOST_FN LocalSpan<T> scratch();
  /// The first `count` elements of the scratch memory. Any thread may call it alone.
  /// Errors: there are fewer.
  template <class T>
  MESHPOST_FN LocalSpan<T> scratch(u64 count);

  // -- moving data
  /// Copies `source` to the beginning of `target`, without a notification.
  /// Called by: all threads; each copies a share. It begins with sync(), so threads may have stored
  ///         parts of the source before.
  /// Order:  a rank that consumes a later notification of this rank, or that leaves a later barrier
  ///         with it, may read the bytes. Until then nobody may read or overwrite them.
  /// Reuse:  `source` must not change before flush(). It may be `target` itself, but must not
  ///         overlap it otherwise.
  /// Errors: a freed window or one of another World; no such rank; more elements than the target
  ///         has; a source that is null. No elements are legal.
  template <class T>
  MESHPOST_FN void put(RemoteSpan<T> const& target, LocalSpan<NonDeduced<T> const> source);
  /// Copies `source` to the beginning of `target`, then raises the target's counter for `tag` by
  /// one, in the target's window.
  /// Called by: all threads; each copies a share. It begins with sync(), so threads may have stored
  ///         parts of the source before.
  /// Order:  a rank that consumes this notification, or a later one of this rank, may read the
  ///         bytes of this put. It may also read those of this rank's earlier puts to it. On one
  ///         device it also sees this rank's earlier plain stores. Until then nobody may read or
  ///         overwrite the bytes.
  /// Reuse:  `source` must not change before flush(). It may be `target` itself: then nothing is
  ///         copied.
  /// Errors: a freed window or one of another World; no such rank or tag; more elements than the
  ///         target has; a source that is null. No elements are legal: it notifies.
  template <class T>
  MESHPOST_FN void put_notify(RemoteSpan<T> const& target, LocalSpan<NonDeduced<T> const> source,
                              Tag tag);
  /// Copies `source` to the beginning of `target`, then raises the target's counter for `tag` by
  /// one, in another window.
  /// Called by: all threads; each copies a share. It begins with sync(), so threads may have stored
  ///         parts of the source before.
  /// Order:  a rank that consumes this notification, or a later one of this rank, may read the
  ///         bytes of this put. It may also read those of this rank's earlier puts to it. Until
  ///         then nobody may read or overwrite them.
  /// Reuse:  `source` must not change before flush().
  /// Errors: those of put(); no such tag in `counters`; `counters` is freed, of another World, or
  ///         over another communicator than the target's window.
  template <class T, class U>
  MESHPOST_FN void put_notify(RemoteSpan<T> const& target, LocalSpan<NonDeduced<T> const> source,
                              Window<U> const& counters, Tag tag);
  /// Copies strided pieces, such as a face of a 3-D grid, from their places straight to their
  /// target places. With a tag, it then raises the target's counter for the tag by one. One side or
  /// both are `span.strided(layout)`; the extents are equal. A side without a layout is packed, x
  /// fastest.
  /// Called by: all threads; each copies a share.
  /// Order:  a rank that consumes the notification, or a later one of this rank, may read the
  ///         elements. Until then nobody may read or overwrite them.
  /// Reuse:  the source must not change before flush(). Each element of the source is the same as
  ///         its element of the target, or source and target have no element in common.
  /// Errors: those of put() and put_notify(); extents that differ; a layout that leaves its span;
  ///         elements of the target that lie on or between each other (StridedLayout::is_unique).
  /// Cost:   for ranks out of reach of loads and stores, each run of more than 4 KiB that lies
  ///         side by side on both sides is one message. Shorter ones share messages of up to 4 KiB
  ///         as long as they follow each other at the target.
  template <class Target, class Source>
    requires detail::StridedPut<Target, Source>
  MESHPOST_FN void put(Target const& target, Source const& source);
  template <class Target, class Source>
    requires detail::StridedPut<Target, Source>
  MESHPOST_FN void put_notify(Target const& target, Source const& source, Tag tag);
  template <class Target, class Source, class U>
    requires detail::StridedPut<Target, Source>
  MESHPOST_FN void put_notify(Target const& target, Source const& source, Window<U> const& counters,
                              Tag tag);
  /// Raises rank `target`'s counter for `tag` in `window` by one.
  /// Called by: all threads. It begins with sync().
  /// Order:  a rank that consumes it may read this rank's earlier puts to it, and on one device its
  ///         earlier plain stores. Call publish() before it for plain stores that a rank of another
  ///         device will get().
  /// Errors: a freed window or one of another World; no such rank or tag.
  template <class T>
  MESHPOST_FN void notify(Window<T> const& window, RankId target, Tag tag);
  /// Raises a counter of the host of a process by one; the host waits for it with Window::wait.
  /// Called by: all threads.
  /// Order:  the host sees this rank's earlier puts to it and its earlier plain stores.
  /// Errors: a freed window or one of another World; no such device or tag.
  template <class T>
  MESHPOST_FN void notify(Window<T> const& window, HostId host, Tag tag);
  /// Raises a counter of a stream by one; that stream waits for it with StreamEndpoint::wait.
  /// Called by: all threads.
  /// Order:  work of the stream behind that wait sees this rank's earlier puts to the stream's
  ///         device and its earlier plain stores.
  /// Errors: a freed window or one of another World; no such device, stream or tag.
  template <class T>
  MESHPOST_FN void notify(Window<T> const& window, StreamId stream, Tag tag);
  /// A put_notify() with these arguments, or a notify(), for put_notify(PreparedPut): it is checked
  /// and looked up here, once. In loops on GPUs that saves most if a rank has many threads. Then
  /// keep it in scratch(): all threads prepare, one stores it, and all call sync() before its use.
  /// Called by: all threads. Order: none. Errors: those of put_notify() and notify().
  template <class T>
  MESHPOST_FN PreparedPut prepare_put_notify(RemoteSpan<T> const& target,
                                             LocalSpan<NonDeduced<T> const> source, Tag tag);
  template <class T, class U>
  MESHPOST_FN PreparedPut prepare_put_notify(RemoteSpan<T> const& target,
                                             LocalSpan<NonDeduced<T> const> source,
                                             Window<U> const& counters, Tag tag);
  template <class T>
  MESHPOST_FN PreparedPut prepare_notify(Window<T> const& window, RankId target, Tag tag);
  /// The put_notify() or notify() that `put` was prepared for.
  /// Called by: all threads. It begins with sync().
  /// Order, Reuse: as that one. `put` itself may change behind the next sync().
  /// Errors: this rank has not prepared it; a freed window.
  MESHPOST_FN void put_notify(PreparedPut const& put);
  /// Copies the beginning of `source` to all of `target`.
  /// Called by: all threads; each copies a share.
  /// Order:  the bytes are there when it returns. The bytes are those that their owner stored
  ///         before a notification that this rank consumed. An owner on another device must call
  ///         publish() before that notification.
  /// Reuse:  `target` may be used at once.
  /// Errors: a freed window or one of another World; no such rank; fewer elements in `source` than
  ///         in `target`; a target that is null.
  template <class T>
  MESHPOST_FN void get(LocalSpan<T> target, RemoteSpan<NonDeduced<T>> const& source);
  /// Waits until the sources of this rank's puts to `window` may be changed. It does not wait for
  /// their delivery.
  /// Called by: all threads. Errors: a freed window or one of another World.
  template <class T>
  MESHPOST_FN void flush(Window<T> const& window);
  /// Makes this rank's plain stores visible to ranks of other devices that it notifies after this,
  /// and that get() them.
  /// Called by: all threads. Order: all stores of this rank before it. Errors: none.
  MESHPOST_FN void publish();

  // -- arrival
  /// Waits until `count` notifications with `tag` have arrived in `window`, and consumes them.
  /// `expected`, a rank of the world, is named in the report if they never come.
  /// Called by: all threads.
  /// Order:  all threads may then read the bytes that these notifications announce, and those of
  ///         their senders' earlier puts to this rank.
  /// Errors: a freed window or one of another World; no such tag; a count above 2^30. A wait that
  ///         can never end, or during which no rank makes progress for the deadline, ends the run.
  template <class T>
  MESHPOST_FN void wait(Window<T> const& window, Tag tag, u32 count = 1,
                        RankId expected = {Note::no_rank});
  /// A wait() with these arguments for wait(PreparedWait): it is checked and looked up here, once.
  /// Called by: all threads. Order: none. Errors: a freed window or one of another World; no such
  ///         tag; a count above 2^30.
  template <class T>
  MESHPOST_FN PreparedWait prepare_wait(Window<T> const& window, Tag tag, u32 count = 1,
                                        RankId expected = {Note::no_rank});
  /// The wait() that `wait` was prepared for.
  /// Called by: all threads. Order: as that one.
  /// Errors: this rank has not prepared it; a freed window; a wait that can never end, as above.
  MESHPOST_FN void wait(PreparedWait const& wait);
  /// Consumes `count` notifications with `tag` if that many have arrived in `window`; returns
  /// whether it did. It never waits.
  /// Called by: all threads; all get the same answer.
  /// Order:  if true, all threads may read what these notifications announce, as after wait().
  /// Errors: a freed window or one of another World; no such tag; a count above 2^30.
  template <class T>
  MESHPOST_FN bool test(Window<T> const& window, Tag tag, u32 count = 1);
  /// Stores `value` (1, 2, 4 or 8 bytes, aligned) whole into the first element of `target`.
  /// Called by: all threads.
  /// Order:  a rank whose wait_until() has seen it may read this rank's earlier puts to it, as if
  ///         it had consumed a notification sent here.
  /// Reuse:  `value` is copied; nothing has to stay.
  /// Errors: a freed window or one of another World; no such rank; a target without elements, or
  ///         not aligned to its size.
  template <class T>
  MESHPOST_FN void put_value(RemoteSpan<T> const& target, NonDeduced<T> value);
  /// Waits until the comparison of the first element of `word`, in a window of this rank, with
  /// `value` is true. T is an integer or floating type of 4 or 8 bytes. It consumes no
  /// notification. `expected`, a rank of the world, is named in the report if it never comes true.
  /// Called by: all threads.
  /// Order:  all threads may then read the earlier puts of the rank whose put_value() it has seen.
  /// Errors: a word that is null or misaligned, or no element. A wait that can never end, or during
  ///         which no rank makes progress for the deadline, ends the run.
  template <class T>
  MESHPOST_FN void wait_until(LocalSpan<T> word, Compare compare, NonDeduced<T> value,
                              RankId expected = {Note::no_rank});

  // -- all ranks of a group together. All threads of all its ranks call them, in the same order.
  // The ranks that call one wait for those that don't, until a deadlock is found or the deadline
  // ends the run. Elements have at most 256 bytes. Errors of all: a communicator of another World,
  // or one without this rank; memory that is null.

  /// Waits until all ranks of the world have called it.
  /// Order: their stores and puts before it are seen by all behind it, on every device. It consumes
  /// no notification, and delivers no put that has one.
  MESHPOST_FN void barrier();
  /// Waits until all ranks of this rank's group have called it.
  /// Order: their stores and puts before it are seen by all of the group behind it. A notification
  /// of one rank does not deliver the puts of another one of its group to others. It consumes no
  /// notification, and delivers no put that has one.
  MESHPOST_FN void barrier(Communicator const& communicator);
  /// `data` of rank `root` of the group replaces `data` of all ranks. Sizes are equal at all ranks.
  /// Order: `data` is complete and may change when it returns. Errors: no such root.
  template <class T>
  MESHPOST_FN void broadcast(Communicator const& communicator, LocalSpan<T> data, RankId root);
  /// data[i] of all ranks, combined, replaces data[i] at `root`. The order is that of their
  /// numbers: first the ranks of each device, then the results of the devices. So the result does
  /// not depend on timing. But if `combine` rounds, it depends on which ranks share a device. Sizes
  /// are equal at all ranks. `data` of the other ranks is unchanged.
  /// Order: `data` is complete and may change when it returns. Errors: no such root.
  template <class T, class Combine>
  MESHPOST_FN void reduce(Communicator const& communicator, LocalSpan<T> data, Combine combine,
                          RankId root);
  /// data[i] of all ranks, combined as reduce() does, replaces data[i] at every rank. All ranks get
  /// the same bits. Sizes are equal at all ranks. Order: `data` is complete and may change when it
  /// returns.
  template <class T, class Combine>
  MESHPOST_FN void all_reduce(Communicator const& communicator, LocalSpan<T> data, Combine combine);
  /// Block r of `data` of all ranks, combined as reduce() does, goes to `target` of rank r. `data`
  /// has a block of target.size() elements for each rank of the group; `target` may be this rank's
  /// block. Sizes are equal at all ranks.
  /// Order: `target` is complete, and `data` may change, when it returns. Errors: other sizes.
  template <class T, class Combine>
  MESHPOST_FN void reduce_scatter(Communicator const& communicator, LocalSpan<T> target,
                                  LocalSpan<NonDeduced<T> const> data, Combine combine);
  /// `mine` of rank r goes to target[r * mine.size() ...] at every rank. Sizes are equal at all
  /// ranks.
  /// Order: `target` is complete, and `mine` may change, when it returns. Errors: other sizes.
  template <class T>
  MESHPOST_FN void all_gather(Communicator const& communicator, LocalSpan<T> target,
                              LocalSpan<NonDeduced<T> const> mine);

  // -- log and timeline
  /// Prints a line while the kernel runs. Each {} stands for a number, as in fmt::format; up to 8
  /// numbers.
  /// Called by: all threads; it is one line a rank. Errors: more than 8 numbers do not compile.
  template <class... Arguments>
  MESHPOST_FN void log(char const* text, Arguments... arguments);
  /// Records a named point on the timeline, if there is one; up to 23 characters.
  /// Called by: all threads; it is one point a rank.
  MESHPOST_FN void mark(char const* name);
  /// Begin and end an interval that RunResult::timings reports for each device, from the first
  /// rank's begin to the last rank's end.
  /// Called by: all threads of all ranks of the device.
  /// Errors: more intervals than TimerBuffer::capacity; an end without a begin.
  MESHPOST_FN void start_timer();
  MESHPOST_FN void stop_timer();
  /// Nanoseconds on this device's clock. Any thread may call it alone.
  MESHPOST_FN u64 now() const { return memory::clock_ns(); }
  /// Ends the whole run with an error that names this rank and `reason`; does not return. Any
  /// thread may call it alone. On a GPU the rank's other threads then go on for a while, also past
  /// waits for what has not come. So let all threads call it if you can (any()).
  MESHPOST_FN void fail(char const* reason);

  // -- for layers above
  MESHPOST_FN RunState const& state() const { return *state_; }
  /// A copy for another thread of this rank, for a layer that keeps one Rank in memory that they
  /// share. `fiber` is that thread's fiber, null on a GPU.
  MESHPOST_FN Rank for_thread(void* fiber) const {
    Rank copy = *this;
    copy.block_ = block_.for_thread(fiber);
    return copy;
  }
  /// Makes this copy send and receive nothing by lane. All ranks of the run must call it, before
  /// they prepare anything.
  MESHPOST_FN void leave_lanes() { lane_limit_ = 0; }
  /// Ends the whole run for this reason; the arguments are the report's.
  [[noreturn]] MESHPOST_FN void fail(Subject subject, Fault fault, u64 a = 0, u64 b = 0, u64 c = 0,
                                     char const* text = nullptr) {
    block_.fail(subject, fault, a, b, c, text);
  }
  /// Writes down a time of an interval of state().timers, its begin (0) or end (1). One thread
  /// calls it, alone; the next too.
  MESHPOST_FN static void note_time(RunState const& state, u32 local_rank, u32 interval, u32 end,
                                    u64 now);
  /// log() for a line that is already formatted.
  MESHPOST_FN void send(LogRecord const& line);
  /// The kernel's begin, and its end; the launch calls them. false: the kernel must not run.
  MESHPOST_FN bool start();
  MESHPOST_FN void finish();

 private:
  template <class T>
  friend class Window;
  class Traced;
  MESHPOST_FN void trace_life(bool ends) const;

  using Location = via::Location;
  MESHPOST_FN Location locate(Operation operation, WindowInfo const& window, RankId rank);
  MESHPOST_FN Location locate_part(WindowInfo const& window, u32 rank) const;
  MESHPOST_FN Location locate_uniform(WindowInfo const& window, u32 rank) const;
  MESHPOST_FN static Location locate_any(RunState const& state, Block block, u32 id,
                                         Operation operation, WindowInfo window, RankId rank);
  MESHPOST_FN Location own(WindowInfo const& window) const;
  MESHPOST_FN u32 member(Subject subject, Communicator const& communicator, RankId rank);
  MESHPOST_FN Group group_of(Communicator const& communicator) const;
  MESHPOST_FN Group checked_group(Operation operation, Communicator const& communicator) const;
  MESHPOST_FN Group joined_group(Subject subject, Communicator const& communicator);
  MESHPOST_FN u32 member_of(Communicator const& communicator, Group const& group, u32 index) const;
  MESHPOST_FN char* on_device(u32 device, u64 offset) const {
    return state_->heap + device * state_->stride + offset;
  }

  MESHPOST_FN bool may_be_freed(WindowInfo const& window) const {
    return window.number - first_freed_ < freed_span_;
  }
  MESHPOST_FN void check_window(Operation operation, WindowInfo const& window);
  MESHPOST_FN void check_tag(Subject subject, u32 tags, Tag tag);
  MESHPOST_FN void check_counters(WindowInfo const& counters, Tag tag);
  template <class T>
  MESHPOST_FN void check_source(Subject subject, LocalSpan<T> span);
  MESHPOST_FN void check_range(Subject subject, u64 offset, u64 count, u64 limit);
  template <class T>
  MESHPOST_FN Location begin_put(Operation operation, RemoteSpan<T> const& target,
                                 LocalSpan<T const> source);
  template <class Target, class Source>
  MESHPOST_FN Location begin_strided_put(Operation operation, Target const& target,
                                         Source const& source, StridedCopy& copy);
  MESHPOST_FN void move(Location const& to, void* target, void const* source, u64 bytes);
  MESHPOST_FN void move(Location const& to, StridedCopy const& copy);
  MESHPOST_FN void raise(Location const& to, Tag tag);
  MESHPOST_FN void notify_endpoint(u32 device, u64 counters, Tag tag);
  MESHPOST_FN void move_and_raise(Location const& to, void* target, void const* source, u64 bytes,
                                  Location const& counters, Tag tag);
  MESHPOST_FN void move_and_raise(Location const& to, StridedCopy const& copy,
                                  Location const& counters, Tag tag);
  MESHPOST_FN PreparedPut prepared(Location const& to, void* target, void const* source, u64 bytes,
                                   WindowInfo const& window, WindowInfo const& counters,
                                   Tag tag) const;
  MESHPOST_FN void put_directly(PreparedPut const& put);
  MESHPOST_FN void wait_directly(PreparedWait const& wait);
  [[noreturn]] MESHPOST_FN void end_prepared(Operation operation, u32 world, u32 rank, u32 window);
  MESHPOST_FN bool has_prepared(u32 world, u32 rank, u32 window) const;
  MESHPOST_FN void check_prepared(Operation operation, u32 world, u32 rank, u32 window);
  MESHPOST_FN void check_wait(Operation operation, WindowInfo const& info, Tag tag, u32 count);
  MESHPOST_FN void await_and_consume(AwaitedCount const& awaited, Note const& note);
  MESHPOST_FN u32 await_count(AwaitedCount const& awaited, Note const& note);
  MESHPOST_FN bool has_count(AwaitedCount const& awaited, u32& found);
  MESHPOST_FN void consume(u32* counter, u32 count, u32 found);
  MESHPOST_FN BarrierWords* barrier_words(Communicator const& communicator, Group const& group,
                                          u32 device) const;
  MESHPOST_FN bool arrive(Communicator const& communicator, Group const& group);
  MESHPOST_FN bool tells_itself(Group const& group) const;
  MESHPOST_FN void release(Communicator const& communicator, Group const& group, u32 next,
                           u32 ranks);
  MESHPOST_FN u32 to_release(Communicator const& communicator, Group const& group);
  template <bool inlined>
  MESHPOST_FN void await_word(u32 const* word, u32 value, Note const& note);
  template <bool inlined = false>
  MESHPOST_FN void await_release(Communicator const& communicator, Group const& group,
                                 Operation operation, u32 next);
  template <bool inlined = false>
  MESHPOST_FN void meet(Communicator const& communicator, Group const& group, Operation operation);
  MESHPOST_FN void meet_by_few(Communicator const& communicator, u32 next);
  MESHPOST_FN void meet_on_device(Communicator const& communicator, Group const& group,
                                  Operation operation);
  MESHPOST_FN u32 place_of(Communicator const& communicator, Group const& group, u32 index) const;
  MESHPOST_FN u32 generation(Communicator const& communicator) const;
  /// A half of the areas that collectives use, by the parity of the group's barriers.
  enum class Half : u32 { even, odd };
  MESHPOST_FN static Half half_of(u32 generation) { return Half{generation % 2}; }
  MESHPOST_FN char* slots(Communicator const& communicator, Group const& group, u32 device,
                          Half half) const;
  MESHPOST_FN void publish_beyond(Group const& group);
  MESHPOST_FN void send_to_all(Communicator const& communicator, Group const& group, Half half,
                               u64 offset, void const* source, u64 bytes, Operation operation);
  MESHPOST_FN void broadcast_step(Communicator const& communicator, Group const& group, char* data,
                                  u64 bytes, bool sender);
  MESHPOST_FN char* part(Communicator const& communicator, Group const& group, u32 device,
                         Half half, u32 place) const;
  struct Reduction;
  template <class T, class Combine>
  MESHPOST_FN void reduce_steps(Reduction step, T* target, LocalSpan<T const> data,
                                Combine combine);
  template <class T, class Combine>
  MESHPOST_FN void reduce_step(Reduction const& step, T* target, T const* data, Combine combine);
  MESHPOST_FN void touch(detail::Vectors<char> const& vectors, u64 begin, u64 end);
  template <class T, class Combine>
  MESHPOST_FN void bring_parts(Reduction const& step, T const* data, Combine combine);
  template <class T, class Combine>
  MESHPOST_FN bool fold_to_all(Reduction const& step, Half half, u32 place, bool to_all,
                               detail::Vectors<T> const& vectors, u64 begin, u64 end,
                               Combine combine);
  template <class T, class Combine>
  MESHPOST_FN void combine_piece(Reduction const& step, Half half, detail::Vectors<T> const& parts,
                                 Combine combine);
  template <class T>
  MESHPOST_FN void send_part(Reduction const& step, Half half, T const* source, u64 begin, u64 end);

  void* scratch_;
  // Values that every operation needs, in registers: a load from constant memory takes a GPU 35
  // cycles, and the loads follow each other. zero_ is 0, which the compiler can't know. Adding it
  // keeps the compiler from loading a value again. It also keeps the values in the vector
  // registers, where such chains run faster than in the uniform ones.
  u32 world_, ranks_, ranks_per_device_, traced_, device_;
  u32 first_freed_, freed_span_;  // RunState::freed
  char* heap_;
  u64 reciprocal_;
  u32 intervals_ = 0;         // timer intervals begun
  u32 world_generation_ = 0;  // barriers passed, world and device; kept here: they are frequent
  u32 device_generation_ = 0;
};

}  // namespace meshpost

// Its members; those that others use come first.
// clang-format off
#include "meshpost/rma/detail/traced.hpp"
#include "meshpost/rma/detail/locate.hpp"
#include "meshpost/rma/detail/put.hpp"
#include "meshpost/rma/detail/strided.hpp"
#include "meshpost/rma/detail/wait.hpp"
#include "meshpost/rma/detail/prepared.hpp"
#include "meshpost/rma/detail/barrier.hpp"
#include "meshpost/rma/detail/collectives.hpp"
#include "meshpost/rma/detail/reductions.hpp"
#include "meshpost/rma/detail/logging.hpp"
#include "meshpost/rma/detail/run_end.hpp"
#include "meshpost/rma/detail/run_begin.hpp"
// clang-format on
