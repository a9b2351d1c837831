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
//  2. A rank puts a piece of step k when the piece of step k - 2 was taken. If the two devices send
//     to each other, it knows: device q has sent its pieces of step k - 1 behind the barrier that
//     begins start(), so all its ranks had returned from finish() of step k - 2. A rank of this
//     device has consumed them, and the device has had a barrier since then. Otherwise the rank
//     that took it has stored k - 1 into a word of the sender's device, by put_value. Its threads meet between
//     their loads from `arriving` and that store (Rank::put_value begins with a meeting), and the
//     sender has acquired it when it puts. So no piece is overwritten that is still to be read. On
//     GPUs this is the order of a reply behind reads, with a word in place of a notification: it
//     rests on the hardware (docs/architecture.md, "The contract").
//     The word stays behind the run, and behind this object. The constructor clears it, between two
//     barriers of the world: the first one comes behind the last words of an object before this
//     one, the second one before the first word of this one.
//  3. Pieces with consecutive places are put from there, others are packed into `outgoing`. Both
//     may change behind finish(), because that flushes and ends with a barrier: the puts of all
//     ranks have been read.
//  4. A device may send to itself: at the ends of a periodic grid. Then the same rank has the piece
//     at both ends. It packs it into `arriving` at once, without message and word. It has taken
//     the piece of step k - 2 before, in finish(). Its threads meet between the pack and the reads:
//     in that flush; for sums also at a barrier (5).
//  5. start() begins with a barrier of the device, so ranks may pack what other ranks have stored.
//     finish() ends with one, so they may read what other ranks have taken. For sums, ranks share
//     the places, not the pieces. Then a rank reads bytes whose notification another rank of its
//     device has consumed. There is a barrier between the two, which the rules of delivery ask for,
//     and one between the reads and the words of 2.
//  6. Out of reach, a message costs the host so much that a device has a few long pieces. One rank
//     alone would take long for a piece (a GPU some 20 us for 256 KiB). So if such pieces are
//     scattered, all ranks pack and take all of the device's elements together. A barrier comes
//     between the pack and the puts. For 2, 4 and the rules of delivery it holds what 5 says of sums:
//     one comes before the reads, and one behind them.
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
  size_ = table_[Table::size];
  packed_together_ = table_[Table::packed_together];
  taken_together_ = table_[Table::taken_together];
  by_piece_ = table_[Table::targets] == 0 && taken_together_ == 0;
  auto const mine = [&](u64 pieces, u64 begins) {
    u64 const* const begin = table_ + table_[begins] + self.local_id();
    return Pieces{table_ + table_[pieces] + begin[0] * Table::piece_words,
                  static_cast<u32>(begin[1] - begin[0])};
  };
  sends_ = mine(Table::sends, Table::send_begins);
  receives_ = mine(Table::receives, Table::receive_begins);
  each_piece(receives_, first_of(receives_), [&](Table::Piece const& piece) {
    coming_ += own(piece) ? 0 : 1;
    gives_credit_ |= has_credit(piece);
  });
  auto const credits = exchange.credits.local(self);
  busy_ = &credits[credits.size() - self.local_size() + self.local_id()];
  self.barrier();
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
  if (elements < size_)
    self_->fail(
        "RankExchange: the array has fewer elements than the plan's part of this device "
        "(PartPlan::size)");
  started_ = !started;
}

// On a GPU every acquire drops what the rank has cached, so a load behind a wait takes some 0.3 us.
// Hence a rank reads a piece's words before it waits, and those of the next piece before it works
// on one.

/// Calls work(piece) for each. `head`: the first one's words.
template <class T>
template <class Work>
MESHPOST_FN void RankExchange<T>::each_piece(Pieces const& pieces, Table::Piece const& head,
                                             Work&& work) const {
  Table::Piece next = head;
  for (u32 i = 0; i < pieces.count; ++i) {
    Table::Piece const now = next;
    if (i + 1 < pieces.count) next = piece(pieces, i + 1);
    work(now);
  }
}

namespace detail {
/// store(i, load(i)) for each i < count, by all threads. On GPUs four loads of a thread come before
/// their stores: one after the other, each would wait for the one before.
template <class Load, class Store>
MESHPOST_FN void load_and_store(Rank& self, u64 count, Load&& load, Store&& store) {
  if constexpr (!memory::on_gpu) {
    self.each(count, [&](u64 i) { store(i, load(i)); });
  } else {
    u64 const threads = self.threads();
    for (u64 i = self.thread(); i < count; i += 4 * threads) {
      auto const at = [&](u64 k) {  // some of the last ones are loaded twice, and stored once
        return i + k * threads < count ? i + k * threads : i;
      };
      auto const a = load(i), b = load(at(1)), c = load(at(2)), d = load(at(3));
      store(i, a);
      if (at(1) != i) store(at(1), b);
      if (at(2) != i) store(at(2), c);
      if (at(3) != i) store(at(3), d);
    }
  }
}
}  // namespace detail

template <class T>
MESHPOST_FN void RankExchange<T>::start(LocalSpan<T const> source) {
  Rank& self = *self_;
  check(source.size(), false, "RankExchange::start() before finish() of the last one");
  auto const head = first_of(sends_);
  u64 const another = *busy_;  // by all threads, so that all fail
  self.barrier(self.device_communicator());
  if (another != 0)
    self.fail(
        "RankExchange::start() while another RankExchange over the same Exchange is between "
        "start() and finish(); make_exchange() once more for a second one");
  if (self.thread() == 0) *busy_ = 1;
  if (packed_together_ != 0) pack_together(source);
  each_piece(sends_, head, [&](Table::Piece const& one) { send(one, source); });
}

template <class T>
MESHPOST_FN void RankExchange<T>::pack_together(LocalSpan<T const> source) {
  Rank& self = *self_;
  auto const packed = exchange_.outgoing.local(self);
  auto const share = share_of(packed_together_);
  u64 const* const places = table_ + word(Table::sent) + share.first;
  detail::load_and_store(
      self, share.count, [&](u64 i) { return source[places[i]]; },
      [&](u64 i, T const& value) { packed[share.first + i] = value; });
  self.barrier(self.device_communicator());
}

template <class T>
MESHPOST_FN void RankExchange<T>::send(Table::Piece const& piece, LocalSpan<T const> source) {
  Rank& self = *self_;
  RankId const target{static_cast<u32>(piece.rank)};
  if (has_credit(piece) && step_ >= 2)
    self.wait_until(exchange_.credits.local(self).subspan(piece.credit), Compare::greater_equal,
                    step_ - 1, target);
  u64 const there = step_ % 2 * exchange_.pitch + piece.there;
  auto sent = source.subspan(piece.place, piece.count);
  if (own(piece) || piece.place == Table::scattered) {
    auto const packed = own(piece)
                            ? arriving_.subspan(there, piece.count)
                            : exchange_.outgoing.local(self).subspan(piece.first, piece.count);
    u64 const* const places = places_of(piece, Table::sent);
    if (own(piece) || packed_together_ == 0)
      detail::load_and_store(
          self, piece.count, [&](u64 i) { return source[places ? places[i] : piece.place + i]; },
          [&](u64 i, T const& value) { packed[i] = value; });
    sent = packed;
  }
  if (!own(piece))
    self.put_notify(exchange_.arriving.at(target, there), sent, Tag{static_cast<u32>(step_ % 2)});
}

template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::finish(LocalSpan<T> target, Combine&& combine) {
  Rank& self = *self_;
  check(target.size(), true, "RankExchange::finish() without start()");
  auto const head = first_of(receives_);
  if (coming_ != 0) self.wait(exchange_.arriving, Tag{static_cast<u32>(step_ % 2)}, coming_);
  self.flush(exchange_.arriving);
  if (self.thread() == 0) *busy_ = 0;  // all threads look there again behind a barrier below
  if (by_piece_)
    each_piece(receives_, head, [&](Table::Piece const& one) { take(one, target, combine); });
  else if (taken_together_ != 0) take_together(target, combine);
  else take_by_place(target, combine);
  if (gives_credit_) give_credit();
  ++step_;
  if (by_piece_) self.barrier(self.device_communicator());
}

/// One element for each place: each rank takes its pieces.
template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::take(Table::Piece const& piece, LocalSpan<T> target,
                                       Combine& combine) {
  u64 const* const places = places_of(piece, Table::received);
  if constexpr (same<Combine, detail::Replace>)
    if (places == nullptr)
      return memory::copy(&target[piece.place], arrived(piece.first), piece.count * sizeof(T),
                          self_->thread(), self_->threads());
  auto const place_of = [&](u64 i) { return places ? places[i] : piece.place + i; };
  take(piece.first, piece.count, place_of, target, combine);
}

/// The same, of all elements: each rank takes a share.
template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::take_together(LocalSpan<T> target, Combine& combine) {
  Rank& self = *self_;
  self.barrier(self.device_communicator());
  auto const share = share_of(taken_together_);
  u64 const* const places = table_ + word(Table::received) + share.first;
  auto const place_of = [&](u64 i) { return places[i]; };
  take(share.first, share.count, place_of, target, combine);
  self.barrier(self.device_communicator());
}

/// Elements that came, from this number on.
template <class T>
template <class PlaceOf, class Combine>
MESHPOST_FN void RankExchange<T>::take(u64 first, u64 count, PlaceOf const& place_of,
                                       LocalSpan<T> target, Combine& combine) {
  T const* const come = arrived(first);
  struct Came {
    u64 place;
    T old, value;
  };
  detail::load_and_store(
      *self_, count,
      [&](u64 i) {
        u64 const place = place_of(i);
        return Came{place, target[place], come[i]};
      },
      [&](u64 /*i*/, Came const& came) { target[came.place] = combine(came.old, came.value); });
}

/// Several elements for a place: ranks share the places.
template <class T>
template <class Combine>
MESHPOST_FN void RankExchange<T>::take_by_place(LocalSpan<T> target, Combine& combine) {
  Rank& self = *self_;
  self.barrier(self.device_communicator());
  T const* const come = arrived(0);
  u64 const *const places = table_ + word(Table::targets),
                   *const begins = table_ + word(Table::arrivals_begin),
                   *const numbers = table_ + word(Table::arrivals);
  auto const [first, count] = share_of(word(Table::target_count));
  self.each(count, [&](u64 i) {
    T value = target[places[first + i]];
    for (u64 k = begins[first + i]; k < begins[first + i + 1]; ++k)
      value = combine(value, come[numbers[k]]);
    target[places[first + i]] = value;
  });
  self.barrier(self.device_communicator());
}

template <class T>
MESHPOST_FN void RankExchange<T>::give_credit() {
  each_piece(receives_, first_of(receives_), [&](Table::Piece const& piece) {
    if (has_credit(piece))
      self_->put_value(exchange_.credits.at(RankId{static_cast<u32>(piece.rank)}, piece.credit),
                       step_ + 1);
  });
}

}  // namespace meshpost
