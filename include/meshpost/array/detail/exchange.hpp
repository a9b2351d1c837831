#pragma once
#include "meshpost/array/exchange.hpp"

// clang-format off
// An exchange inside a kernel.
//
// The elements that one device sends another are cut into pieces. A rank there packs a piece into
// `outgoing`, and puts it with a notification into `arriving` of the other device. A rank there
// takes it from `arriving` to its places. Which ranks these are both ends know without asking
// (piece i of devices p and q: rank p + i at q, rank q + i at p, modulo the ranks of a device).
//
//  1. `arriving` has two halves, for even steps and for odd ones, each with its own tag. So a rank
//     waits for exactly the pieces of its step: those of the next step raise the other counter, and
//     those of the step after next are not sent yet (2).
//  2. A rank puts a piece of step k when the piece of step k - 2 was taken. The rank that took it
//     has stored k - 1 into a word of the sender's device, by put_value. Its threads meet between
//     their loads from `arriving` and that store (Rank::put_value begins with a meeting), and the
//     sender has acquired it when it puts. So no piece is overwritten that is still to be read. On
//     GPUs this is the order of a reply behind reads, with a word in place of a notification: it
//     rests on the hardware (docs/architecture.md, "The contract").
//     The word stays behind the run, and behind this object. The constructor clears it, between two
//     barriers of the world: the first one comes behind the last words of an object before this
//     one, the second one before the first word of this one.
//  3. A rank packs its piece of `outgoing` again after flush(): its earlier puts have been read.
//  4. start() begins with a barrier of the device, so ranks may pack what other ranks have stored.
//     finish() ends with one, so they may read what other ranks have taken. For sums, ranks share
//     the places, not the pieces. Then a rank reads bytes whose notification another rank of its
//     device has consumed. There is a barrier between the two, which the rules of delivery ask for,
//     and one between the reads and the words of 2.
//
// Nobody waits for ever if all ranks of all devices call start() and finish() in turn: start() of
// step k waits for finish() of step k - 2 elsewhere, which waits for start() of step k - 2.
// clang-format on

namespace meshpost {

template <class T>
MESHPOST_FN RankExchange<T>::RankExchange(Rank& self, Exchange<T> const& exchange)
    : self_(&self), exchange_(exchange) {
  u32 const made_by = exchange.table.info().world, world = self.state().world;
  if (made_by != world) self.fail(Operation::local, Fault::foreign_window, made_by, world);
  table_ = exchange.table.local(self).data();
  arriving_ = exchange.arriving.local(self);
  self.barrier();
  auto const credits = exchange.credits.local(self);
  // Whole, because whoever looks for deadlocks may still read a word for which a rank has waited.
  if (self.local_id() == 0)
    self.each(credits.size(), [&](u64 i) { memory::store(&credits[i], u64{0}, Order::none); });
  self.barrier();
}

template <class T>
MESHPOST_FN void RankExchange<T>::check(u64 elements, bool started, char const* what) {
  if (started_ != started) self_->fail(what);
  if (elements == LocalSpan<T>::invalid_size)
    self_->fail("RankExchange: a subspan that leaves its span was given; see the kernel");
  if (elements < word(Table::size))
    self_->fail(
        "RankExchange: the array has fewer elements than the plan's part of this device "
        "(PartPlan::size)");
  started_ = !started;
}

/// Calls work(piece) for the pieces of this rank.
template <class T>
template <class Work>
MESHPOST_FN void RankExchange<T>::each_piece(u64 pieces, u64 begins, Work&& work) const {
  u64 const* const begin = table_ + word(begins) + self_->local_id();
  for (u64 i = begin[0]; i < begin[1]; ++i) {
    u64 const* const at = table_ + word(pieces) + i * Table::piece_words;
    work(Table::Piece{at[0], at[1], at[2], at[3], at[4]});
  }
}

template <class T>
MESHPOST_FN void RankExchange<T>::start(LocalSpan<T const> source) {
  Rank& self = *self_;
  check(source.size(), false, "RankExchange::start() before finish() of the last one");
  if (busy() != 0)
    self.fail(
        "RankExchange::start() while another RankExchange over the same Exchange is between "
        "start() and finish(); make_exchange() once more for a second one");
  self.barrier(self.device_communicator());  // no thread looks any more
  if (self.thread() == 0) busy() = 1;
  self.flush(exchange_.arriving);
  auto const outgoing = exchange_.outgoing.local(self);
  auto const credits = exchange_.credits.local(self);
  u64 const half = step_ % 2 * exchange_.pitch;
  u64 const* const places = word(Table::sent) != 0 ? table_ + word(Table::sent) : nullptr;
  each_piece(Table::sends, Table::send_begins, [&](Table::Piece const& piece) {
    RankId const target{static_cast<u32>(piece.rank)};
    if (step_ >= 2)
      self.wait_until(credits.subspan(piece.credit), Compare::greater_equal, step_ - 1, target);
    auto const packed = outgoing.subspan(piece.first, piece.count);
    self.each(piece.count, [&](u64 i) {
      u64 const number = piece.first + i;
      packed[i] = source[places ? places[number] : word(Table::sent_first) + number];
    });
    self.put_notify(exchange_.arriving.at(target, half + piece.there), packed,
                    Tag{static_cast<u32>(step_ % 2)});
  });
}

template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::finish(LocalSpan<T> target, Combine&& combine) {
  Rank& self = *self_;
  check(target.size(), true, "RankExchange::finish() without start()");
  u64 const* const begin = table_ + word(Table::receive_begins) + self.local_id();
  if (begin[0] != begin[1])
    self.wait(exchange_.arriving, Tag{static_cast<u32>(step_ % 2)},
              static_cast<u32>(begin[1] - begin[0]));
  if (self.thread() == 0) busy() = 0;  // all threads look behind a barrier below
  if (word(Table::received) == 0) take_pieces(target, combine);
  else take_by_place(target, combine);
  give_credit();
  ++step_;
  if (word(Table::received) == 0) self.barrier(self.device_communicator());
}

/// Consecutive places: each rank takes its pieces.
template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::take_pieces(LocalSpan<T> target, Combine& combine) {
  T const* const come = arriving_.data() + step_ % 2 * exchange_.pitch;
  u64 const first = word(Table::first_received);
  each_piece(Table::receives, Table::receive_begins, [&](Table::Piece const& piece) {
    self_->each(piece.count, [&](u64 i) {
      u64 const number = piece.first + i;
      target[first + number] = combine(target[first + number], come[number]);
    });
  });
}

/// Places in a list, where several elements may go to one: ranks share the places.
template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::take_by_place(LocalSpan<T> target, Combine& combine) {
  Rank& self = *self_;
  self.barrier(self.device_communicator());
  T const* const come = arriving_.data() + step_ % 2 * exchange_.pitch;
  u64 const *const places = table_ + word(Table::targets),
                   *const begins = table_ + word(Table::arrivals_begin),
                   *const numbers = table_ + word(Table::arrivals);
  u64 const count = word(Table::target_count), ranks = self.local_size();
  u64 const from = count * self.local_id() / ranks, to = count * (self.local_id() + 1) / ranks;
  self.each(to - from, [&](u64 i) {
    T value = target[places[from + i]];
    for (u64 k = begins[from + i]; k < begins[from + i + 1]; ++k)
      value = combine(value, come[numbers[k]]);
    target[places[from + i]] = value;
  });
  self.barrier(self.device_communicator());
}

template <class T>
MESHPOST_FN void RankExchange<T>::give_credit() {
  each_piece(Table::receives, Table::receive_begins, [&](Table::Piece const& piece) {
    self_->put_value(exchange_.credits.at(RankId{static_cast<u32>(piece.rank)}, piece.credit),
                     step_ + 1);
  });
}

}  // namespace meshpost
