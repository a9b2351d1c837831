#pragma once
#include "meshpost/rma/delivery.hpp"
#include "meshpost/rma/rank.hpp"

// Puts, notifications, words and gets: checks, then the way that via/choose.hpp selects.

namespace meshpost {

MESHPOST_FN inline void Rank::move(Location const& to, void* target, void const* source,
                                   u64 bytes) {
  block_.sync();  // what the other threads packed into the source is complete
  if (bytes == 0 || target == source || !block_.step(hooks::Step::put_copy)) return;
  if (delivery::checked(state_->ledger)) {
    if (thread() == 0) delivery::put(state_->ledger, block_, id_, to.rank, target, source, bytes);
    return;
  }
  via::write(*this, Operation::put, to, target, source, bytes);
}

MESHPOST_FN inline void Rank::raise(Location const& to, Tag tag) {
  if (via::write_by_lane(*this, to, nullptr, nullptr, 0, to, tag)) return;
  block_.sync();
  if (!block_.step(hooks::Step::notify_raise)) return;
  via::raise(*this, Operation::notify, to, tag);
}

// `counters`: of the same rank, maybe in another window.
MESHPOST_FN inline void Rank::move_and_raise(Location const& to, void* target, void const* source,
                                             u64 bytes, Location const& counters, Tag tag) {
  if (via::write_and_raise(*this, Operation::put_notify, to, target, source, bytes, counters, tag))
    return;
  move(to, target, source, bytes);
  raise(counters, tag);
}

template <class T>
MESHPOST_FN via::Location Rank::begin_put(Operation operation, RemoteSpan<T> const& target,
                                          LocalSpan<T const> source) {
  block_.tick();
  Subject const subject(operation, target.window().number);
  Location const to = locate(operation, target.window(), target.rank());
  check_source(subject, source);
  if (source.size() > target.count()) [[unlikely]]
    fail(subject, Fault::size, source.size(), target.count());
  check_range(subject, target.offset(), source.size(), to.count);
  if (delivery::checked(state_->ledger) && thread() == 0)
    delivery::use(state_->ledger, block_, operation, id_, source.data(), source.bytes());
  return to;
}

MESHPOST_FN inline void Rank::check_counters(WindowInfo const& counters, Tag tag) {
  check_window(Operation::put_notify, counters);
  check_tag(Subject(Operation::put_notify, counters.number), counters.tags, tag);
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
  check_tag(Subject(Operation::put_notify, target.window().number), to.tags, tag);
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
  check_tag(Subject(Operation::notify, window.info().number), to.tags, tag);
  Traced const traced(*this, Operation::notify, to.rank, window.info().number, tag.value);
  raise(to, tag);
}

// Never by lane: counters of the host only count up, and the host reads nothing else. Their raisers
// need not be known.
template <class T>
MESHPOST_FN void Rank::notify(Window<T> const& window, HostId host, Tag tag) {
  block_.tick();
  WindowInfo const& info = window.info();
  check_window(Operation::notify, info);
  check_tag(Subject(Operation::notify, info.number), info.tags, tag);
  if (host.device >= state_->devices) [[unlikely]]
    fail(Subject(Operation::notify, info.number), Fault::argument, host.device, 0,
         state_->devices - 1, "HostId::device");
  Traced const traced(*this, Operation::notify, id_, info.number, tag.value);
  notify_endpoint(host.device, info.host_counters, tag);
}

// The same for counters of streams.
template <class T>
MESHPOST_FN void Rank::notify(Window<T> const& window, StreamId stream, Tag tag) {
  block_.tick();
  WindowInfo const& info = window.info();
  check_window(Operation::notify, info);
  check_tag(Subject(Operation::notify, info.number), info.tags, tag);
  if (stream.device >= state_->devices) [[unlikely]]
    fail(Subject(Operation::notify, info.number), Fault::argument, stream.device, 0,
         state_->devices - 1, "StreamId::device");
  if (stream.number >= StreamId::most) [[unlikely]]
    fail(Subject(Operation::notify, info.number), Fault::argument, stream.number, 0,
         StreamId::most - 1, "StreamId::number");
  Traced const traced(*this, Operation::notify, id_, info.number, tag.value);
  notify_endpoint(stream.device, info.stream_counters(stream.number, WindowInfo::raised), tag);
}

/// By all threads. `counters`: an offset on that device.
MESHPOST_FN inline void Rank::notify_endpoint(u32 device, u64 counters, Tag tag) {
  block_.sync();
  if (thread() == 0) {
    memory::fence(Order::system);
    via::raise(*state_, block_, device,
               reinterpret_cast<u32*>(on_device(device, counters)) + tag.value, u32{1});
  }
  block_.rejoin();
}

template <class T>
MESHPOST_FN void Rank::get(LocalSpan<T> target, RemoteSpan<NonDeduced<T>> const& source) {
  block_.tick();
  Subject const subject(Operation::get, source.window().number);
  Location const from = locate(Operation::get, source.window(), source.rank());
  check_source(subject, target);
  if (target.size() > source.count()) fail(subject, Fault::size, target.size(), source.count());
  check_range(subject, source.offset(), target.size(), from.count);
  Traced const traced(*this, Operation::get, from.rank, source.window().number, 0, target.bytes());
  auto const* const data = reinterpret_cast<T const*>(from.data) + source.offset();
  block_.sync();
  if (delivery::checked(state_->ledger) && thread() == 0)
    delivery::use(state_->ledger, block_, Operation::get, id_, data, target.bytes());
  via::read(*this, Operation::get, from, target.data(), data, target.bytes());
  block_.sync();
}

template <class T>
MESHPOST_FN void Rank::flush(Window<T> const& window) {
  block_.tick();
  check_window(Operation::flush, window.info());
  block_.sync();  // each thread copies its share itself, if the proxy doesn't
  via::flush(*this);
}

MESHPOST_FN inline void Rank::publish() {
  block_.tick();
  block_.sync();
  if (thread() == 0) memory::fence(Order::system);
  block_.rejoin();
  unfenced_ = false;
  brings_ = true;
}

template <class T>
MESHPOST_FN void Rank::put_value(RemoteSpan<T> const& target, NonDeduced<T> value) {
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                "put_value stores a word of 1, 2, 4 or 8 bytes");
  block_.tick();
  Subject const subject(Operation::put_value, target.window().number);
  Location const to = locate(Operation::put_value, target.window(), target.rank());
  check_range(subject, target.offset(), target.count() == 0 ? 0 : 1, to.count);
  if (target.count() == 0) fail(subject, Fault::size, 1, 0);
  T* const word = reinterpret_cast<T*>(to.data) + target.offset();
  if (reinterpret_cast<u64>(word) % sizeof(T) != 0)
    fail(subject, Fault::alignment, reinterpret_cast<u64>(word), sizeof(T));
  Traced const traced(*this, Operation::put_value, to.rank, target.window().number, 0, sizeof(T));
  block_.sync();
  via::store(*this, Operation::put_value, to, word, value);
}

}  // namespace meshpost
