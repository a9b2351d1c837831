#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/rank.hpp"

// The direct protocol: copy, fence, raise the counter.
//
// Why the target sees the bytes once it has seen the count (PTX memory model; C++ on CPU devices):
//  1. Each thread of the sender stores its share (move). block_.sync() orders the stores of all
//  threads
//     before what thread 0 does next.
//  2. Thread 0 fences at a scope that includes both ranks (device if they share one, else system),
//  then adds
//     to the counter with a relaxed atomic: together a release pattern, cumulative over step 1.
//  3. The target's thread 0 reads that value, or a later one of the same counter, with acquire at
//  system
//     scope (Block::await): it synchronises with the release. All adds to a counter are
//     read-modify-writes, so a later value continues the release sequences of all earlier ones.
//  4. Block::any() then orders the target's other threads after its thread 0.
// Logical devices of one GPU are different devices here, as if each were a GPU: their ranks fence
// at system scope, which includes both. Nothing holds two scopes against each other: all adds to a
// counter have system scope (memory::add), whoever does them and wherever; the words that are added
// to at device scope (a barrier's `arrived`, the heads of rings) are those of one logical device,
// whose ranks are on one GPU. The count that a rank consumes is taken off the same counter by its
// own relaxed add; it orders nothing and need not.
//
// A word (put_value, wait_until) is ordered as a count is: step 2 stores it behind the fence, step
// 3 reads it. It is stored, not added to, so only a reader of this rank's value is behind the
// fence, be it of this store or of a later one.
//
// First in, first out per pair: a rank's puts and notifications to one target are all stores and
// adds of its block, and each notification fences what came before it. Where the pair has a lane,
// its notifications go by it, as long as there is room (lanes.hpp).
//
// A notification beyond the device with nothing stored there since the last system fence goes
// without one: it orders no puts, for there are none, and plain stores take part only after
// publish(). Packets are stores there, too: a direct notification to a rank that it may have a lane
// to is fenced. One without a fence neither holds earlier loads nor passes on what this rank has
// acquired: the model does not promise either (docs/architecture.md,
// "What rests on hardware alone").
//
// tests/litmus has all of this, against a model of PTX's memory.

namespace meshpost {

MESHPOST_FN inline void Rank::move(Location const& to, void* target, void const* source,
                                   u64 bytes) {
  block_.sync();  // what the other threads packed into the source is complete
  if (bytes == 0 || target == source || !block_.step(hooks::Step::put_copy)) return;
  if (delivery::checked(state_->ledger)) {
    if (thread() == 0) delivery::put(state_->ledger, block_, id_, to.rank, target, source, bytes);
    return;
  }
  if (to.far) [[unlikely]] {
    post(Operation::put, {.target = target, .source = source, .bytes = bytes});
    return;
  }
  memory::copy(target, source, bytes, thread(), threads());
  stored_at(to);
}

// On GPUs with lanes ranks of a device raise words of their own: they send nothing by lane, so
// nobody who sees their counts has to look there (lanes.hpp, 7).
MESHPOST_FN inline u32* Rank::raised_by(Location const& to, u32* counter) const {
  return memory::on_gpu && uses_lanes() && to.near ? to.beside(counter, WindowInfo::near_counts)
                                                   : counter;
}

MESHPOST_FN inline void Rank::raise(Location const& to, Tag tag) {
  if (move_by_lane(to, nullptr, nullptr, 0, to, tag)) return;
  block_.sync();
  if (!block_.step(hooks::Step::notify_raise)) return;
  u32* const counter = to.counters + tag.value;
  if (to.far) [[unlikely]] {
    post(Operation::notify,
         {.counter = counter, .sender = to.beside(counter, WindowInfo::raised_by)});
    return;
  }
  if (thread() == 0) {
    if (delivery::checked(state_->ledger))
      delivery::notify(state_->ledger, block_, id_, to.rank, counter);
    memory::add(raised_by(to, counter), 1,
                to.near                               ? Order::device
                : unfenced_ || may_have_lane(to.rank) ? Order::system
                                                      : Order::none);
    // Who raised it last: if nobody ever does again, the report can name that rank. Nothing depends
    // on its order.
    memory::store_relaxed(to.beside(counter, WindowInfo::raised_by), WindowInfo::raiser(id_));
  }
  // What goes by lane later must not be seen before this count.
  if (!to.near) unfenced_ = may_have_lane(to.rank), brings_ |= unfenced_;
}

// `counters`: of the same rank, maybe in another window.
MESHPOST_FN inline void Rank::move_and_raise(Location const& to, void* target, void const* source,
                                             u64 bytes, Location const& counters, Tag tag) {
  if (to.far && block_.step(hooks::Step::put_copy) && block_.step(hooks::Step::notify_raise))
      [[unlikely]] {
    u32* const counter = counters.counters + tag.value;  // one message
    post(Operation::put_notify, {.target = target,
                                 .source = source,
                                 .bytes = bytes,
                                 .counter = counter,
                                 .sender = counters.beside(counter, WindowInfo::raised_by)});
    return;
  }
  if (move_by_lane(to, target, source, bytes, counters, tag)) return;
  move(to, target, source, bytes);
  raise(counters, tag);
}

template <class T>
MESHPOST_FN Rank::Location Rank::begin_put(Operation operation, RemoteSpan<T> const& target,
                                           LocalSpan<T const> source) {
  block_.tick();
  check_source(operation, source);
  Location const to = locate(operation, target.window(), target.rank());
  if (source.size() > target.count()) [[unlikely]]
    fail(operation, Fault::size, source.size(), target.count());
  check_range(operation, target.offset(), source.size(), to.count);
  if (delivery::checked(state_->ledger) && thread() == 0)
    delivery::use(state_->ledger, block_, operation, id_, source.data(), source.bytes());
  return to;
}

MESHPOST_FN inline void Rank::check_counters(WindowInfo const& counters, Tag tag) {
  check_window(Operation::put_notify, counters);
  check_tag(Operation::put_notify, counters.tags, tag);
}

template <class T>
MESHPOST_FN void Rank::put(RemoteSpan<T> const& target, LocalSpan<NonDeduced<T> const> source) {
  Location const to = begin_put(Operation::put, target, source);
  Traced const traced(*this, Operation::put, to.rank, target.window().number, 0, source.bytes());
  move(to, reinterpret_cast<T*>(to.data) + target.offset(), source.data(), source.bytes());
}

template <class T>
MESHPOST_FN void Rank::put_notify(RemoteSpan<T> const& target,
                                  LocalSpan<NonDeduced<T> const> source, Tag tag) {
  Location const to = begin_put(Operation::put_notify, target, source);
  check_tag(Operation::put_notify, to.tags, tag);
  Traced const traced(*this, Operation::put_notify, to.rank, target.window().number, tag.value,
                      source.bytes());
  move_and_raise(to, reinterpret_cast<T*>(to.data) + target.offset(), source.data(), source.bytes(),
                 to, tag);
}

template <class T, class U>
MESHPOST_FN void Rank::put_notify(RemoteSpan<T> const& target,
                                  LocalSpan<NonDeduced<T> const> source, Window<U> const& counters,
                                  Tag tag) {
  Location const to = begin_put(Operation::put_notify, target, source);
  WindowInfo const& info = counters.info();
  check_counters(info, tag);
  Traced const traced(*this, Operation::put_notify, to.rank, info.number, tag.value,
                      source.bytes());
  move_and_raise(to, reinterpret_cast<T*>(to.data) + target.offset(), source.data(), source.bytes(),
                 locate_uniform(info, to.rank), tag);
}

template <class T>
MESHPOST_FN void Rank::notify(Window<T> const& window, RankId target, Tag tag) {
  block_.tick();
  Location const to = locate(Operation::notify, window.info(), target);
  check_tag(Operation::notify, to.tags, tag);
  Traced const traced(*this, Operation::notify, to.rank, window.info().number, tag.value);
  raise(to, tag);
}

// Never by lane: its counters only count up, and the host reads nothing else. Nobody needs to know
// who raised them.
template <class T>
MESHPOST_FN void Rank::notify(Window<T> const& window, HostId host, Tag tag) {
  block_.tick();
  WindowInfo const& info = window.info();
  check_window(Operation::notify, info);
  check_tag(Operation::notify, info.tags, tag);
  if (host.device >= state_->devices) [[unlikely]]
    fail(Operation::notify, Fault::argument, host.device, 0, state_->devices - 1, "HostId::device");
  Traced const traced(*this, Operation::notify, id_, info.number, tag.value);
  block_.sync();
  auto* const counter = reinterpret_cast<u32*>(on_device(host.device, info.host_counters));
  if (state_->posts.records && state_->posts.far[host.device] != 0) {
    post(Operation::notify, {.kind = Post::Kind::add, .target = counter + tag.value, .value = 1});
  } else if (thread() == 0) {
    memory::add(counter + tag.value, 1, Order::system);
  }
}

template <class T>
MESHPOST_FN void Rank::get(LocalSpan<T> target, RemoteSpan<NonDeduced<T>> const& source) {
  block_.tick();
  check_source(Operation::get, target);
  Location const from = locate(Operation::get, source.window(), source.rank());
  if (target.size() > source.count())
    fail(Operation::get, Fault::size, target.size(), source.count());
  check_range(Operation::get, source.offset(), target.size(), from.count);
  Traced const traced(*this, Operation::get, from.rank, source.window().number, 0, target.bytes());
  auto const* const data = reinterpret_cast<T const*>(from.data) + source.offset();
  block_.sync();
  if (delivery::checked(state_->ledger) && thread() == 0)
    delivery::use(state_->ledger, block_, Operation::get, id_, data, target.bytes());
  if (from.far)
    post(Operation::get, {.kind = Post::Kind::get,
                          .target = target.data(),
                          .source = data,
                          .bytes = target.bytes()});
  else if (data != target.data())
    memory::copy(target.data(), data, target.bytes(), thread(), threads());
  block_.sync();
}

template <class T>
MESHPOST_FN void Rank::flush(Window<T> const& window) {
  block_.tick();
  check_window(Operation::flush, window.info());
  block_.sync();  // each thread copies its share itself: past this point all sources have been read
}

MESHPOST_FN inline void Rank::publish() {
  block_.tick();
  block_.sync();
  if (thread() == 0) memory::fence(Order::system);
  unfenced_ = false;
  brings_ = true;
}

template <class T>
MESHPOST_FN void Rank::put_value(RemoteSpan<T> const& target, NonDeduced<T> value) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                "put_value stores a word of 1, 2, 4 or 8 bytes");
  block_.tick();
  Location const to = locate(Operation::put_value, target.window(), target.rank());
  check_range(Operation::put_value, target.offset(), target.count() == 0 ? 0 : 1, to.count);
  if (target.count() == 0) fail(Operation::put_value, Fault::size, 1, 0);
  T* const word = reinterpret_cast<T*>(to.data) + target.offset();
  if (reinterpret_cast<u64>(word) % sizeof(T) != 0)
    fail(Operation::put_value, Fault::alignment, reinterpret_cast<u64>(word), sizeof(T));
  Traced const traced(*this, Operation::put_value, to.rank, target.window().number, 0, sizeof(T));
  block_.sync();
  if (to.far) [[unlikely]] {
    u64 bits = 0;
    memory::copy(&bits, &value, sizeof(T), 0, 1);
    post(Operation::put_value,
         {.kind = Post::Kind::store, .target = word, .bytes = sizeof(T), .value = bits});
    return;
  }
  if (thread() == 0) {
    if (delivery::checked(state_->ledger)) delivery::put_value(state_->ledger, id_, to.rank, word);
    memory::store(word, value,
                  to.near                               ? Order::device
                  : unfenced_ || may_have_lane(to.rank) ? Order::system
                                                        : Order::none);
  }
  stored_at(to);  // the word itself
}

}  // namespace meshpost
