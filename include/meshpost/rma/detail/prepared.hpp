#pragma once
#include "meshpost/rma/rank.hpp"

// An operation that is prepared goes the same ways as one that is not. Only its checks and its
// addresses are there already.
//
// On a GPU these cost more than all else. Each warp of the rank goes through some hundred
// instructions for them, and what it keeps for them goes to local memory if the kernel has few
// registers: with 1024 threads more than the first cache holds, so the fields of a stencil left it.
// Therefore all that one thread can do is done by thread 0 here, and the other threads only meet
// it. They see the same put, so all of them know whether there is something to copy.

namespace meshpost {

MESHPOST_FN inline bool Rank::has_prepared(u32 world, u32 rank, u32 window) const {
  return world == world_ && rank == id_ &&
         (window - first_freed_ >= freed_span_ || !state_->freed.contains(window));
}
MESHPOST_FN inline void Rank::check_prepared(Operation operation, u32 world, u32 rank, u32 window) {
  if (has_prepared(world, rank, window)) [[likely]]
    return;
  if (world == world_ && rank == id_) fail(operation, Fault::freed_window, window);
  fail(
      Subject(operation, world == world_ ? window : 0), Fault::misuse, 0, 0, 0,
      "this rank has not prepared the operation in this run; let all its threads prepare it first");
}

template <class T>
MESHPOST_FN PreparedPut Rank::prepare_put_notify(RemoteSpan<T> const& target,
                                                 LocalSpan<NonDeduced<T> const> source, Tag tag) {
  Location const to = begin_put(Operation::put_notify, target, source);
  check_tag(Subject(Operation::put_notify, target.window().number), to.tags, tag);
  return prepared(to, reinterpret_cast<T*>(to.data) + target.offset(), source.data(),
                  source.bytes(), target.window(), target.window(), tag);
}

template <class T, class U>
MESHPOST_FN PreparedPut Rank::prepare_put_notify(RemoteSpan<T> const& target,
                                                 LocalSpan<NonDeduced<T> const> source,
                                                 Window<U> const& counters, Tag tag) {
  Location to = begin_put(Operation::put_notify, target, source);
  WindowInfo const& info = counters.info();
  check_counters(info, tag);
  auto* const there = reinterpret_cast<T*>(to.data) + target.offset();
  Location const notified = locate_uniform(info, to.rank);
  to.counters = notified.counters, to.counter_part = notified.counter_part;
  return prepared(to, there, source.data(), source.bytes(), target.window(), info, tag);
}

template <class T>
MESHPOST_FN PreparedPut Rank::prepare_notify(Window<T> const& window, RankId target, Tag tag) {
  block_.tick();
  Location const to = locate(Operation::notify, window.info(), target);
  check_tag(Subject(Operation::notify, window.info().number), to.tags, tag);
  return prepared(to, nullptr, nullptr, 0, window.info(), window.info(), tag);
}

MESHPOST_FN inline PreparedPut Rank::prepared(Location const& to, void* target, void const* source,
                                              u64 bytes, WindowInfo const& window,
                                              WindowInfo const& counters, Tag tag) const {
  PreparedPut put;
  put.to_ = to;
  put.target_ = target, put.source_ = source, put.bytes_ = bytes;
  put.world_ = world_, put.rank_ = id_;
  put.window_ = window.number, put.notified_ = counters.number, put.tag_ = tag;
  put.copies_ = bytes != 0 && target != source;
  put.direct_ = memory::on_gpu && traced_ == 0 && !to.far && (to.near || !uses_lanes());
  return put;
}

MESHPOST_FN inline void Rank::put_notify(PreparedPut const& put) {
#if defined(__CUDA_ARCH__)
  if (put.direct_) [[likely]]
    return put_directly(put);
#endif
  Operation const operation = put.bytes_ == 0 ? Operation::notify : Operation::put_notify;
  block_.tick();
  check_prepared(operation, put.world_, put.rank_, put.window_);
  check_prepared(operation, put.world_, put.rank_, put.notified_);
  if (delivery::checked(state_->ledger) && put.bytes_ != 0 && thread() == 0)
    delivery::use(state_->ledger, block_, operation, id_, put.source_, put.bytes_);
  Traced const traced(*this, operation, put.to_.rank, put.notified_, put.tag_.value, put.bytes_);
  if (put.copies_) move_and_raise(put.to_, put.target_, put.source_, put.bytes_, put.to_, put.tag_);
  else raise(put.to_, put.tag_);
}

#if defined(__CUDA_ARCH__)
/// As via::direct::write() and raise(), whose order of events it has. Without lanes the fences are
/// the matter of thread 0 alone (unfenced_).
MESHPOST_FN inline void Rank::put_directly(PreparedPut const& put) {
  // Read before the threads meet: what was prepared may change behind that, in scratch for one.
  bool const copies = put.copies_;
  bool ends = block_.tick_by_few();
  if (thread() == 0)
    ends |= !has_prepared(put.world_, put.rank_, put.window_) ||
            !has_prepared(put.world_, put.rank_, put.notified_);
  if (block_.any(ends)) [[unlikely]] {  // also: what the other threads packed is complete
    check_prepared(Operation::put_notify, put.world_, put.rank_, put.window_);
    end_prepared(Operation::put_notify, put.world_, put.rank_, put.notified_);
  }
  if (copies) {
    memory::copy(put.target_, put.source_, put.bytes_, thread(), threads());
    block_.sync();
  }
  if (thread() == 0) {
    if (copies) stored_at(put.to_);
    via::direct::raise_alone(*this, put.to_, put.to_.counters + put.tag_.value);
    if (!put.to_.near) unfenced_ = false;
  }
  block_.rejoin();
}
#endif

template <class T>
MESHPOST_FN PreparedWait Rank::prepare_wait(Window<T> const& window, Tag tag, u32 count,
                                            RankId expected) {
  block_.tick();
  check_wait(Operation::wait, window.info(), tag, count);
  WindowInfo const& info = window.info();
  PreparedWait wait;
  wait.awaited_ = {
      .counter = own(info).counters + tag.value, .count = count, .counter_part = info.counter_part};
  wait.note_ = {Operation::wait, info.number, tag.value, count, expected};
  wait.world_ = world_, wait.rank_ = id_;
  wait.direct_ = memory::on_gpu && traced_ == 0 && !uses_lanes();
  return wait;
}

MESHPOST_FN inline void Rank::wait(PreparedWait const& wait) {
#if defined(__CUDA_ARCH__)
  if (wait.direct_) [[likely]]
    return wait_directly(wait);
#endif
  block_.tick();
  check_prepared(Operation::wait, wait.world_, wait.rank_, wait.note_.window);
  await_and_consume(wait.awaited_, wait.note_);
}

#if defined(__CUDA_ARCH__)
MESHPOST_FN inline void Rank::wait_directly(PreparedWait const& wait) {
  bool ends = block_.tick_by_few();
  if (thread() < 32) {
    ends |= !has_prepared(wait.world_, wait.rank_, wait.note_.window);
    // A warp that works while it waits does so together.
    if (state_->command_queue.anything()) ends = block_.team().any(ends);
    if (!ends)
      ends = block_.await_by_few(Condition{wait.awaited_.counter, wait.awaited_.count}, wait.note_,
                                 state_->command_queue);
  }
  if (block_.any(ends)) [[unlikely]]  // also hands what thread 0 acquired to the other threads
    end_prepared(Operation::wait, wait.world_, wait.rank_, wait.note_.window);
  if (thread() == 0) memory::add(wait.awaited_.counter, u32{0} - wait.awaited_.count, Order::none);
  block_.rejoin();
}

/// The operation was not prepared here, or the run was poisoned.
MESHPOST_FN inline void Rank::end_prepared(Operation operation, u32 world, u32 rank, u32 window) {
  check_prepared(operation, world, rank, window);
  block_.leave();
}
#endif

}  // namespace meshpost
