#pragma once
#include "meshpost/rma/kernel.hpp"

#if !defined(__CUDACC_RTC__)
#include "meshpost/array/plan.hpp"
#include "meshpost/rma/roles.hpp"
#include "meshpost/rma/world.hpp"
#endif

// A plan that ranks carry out inside a kernel. array/detail/exchange.hpp has the argument.

namespace meshpost {

namespace detail {

/// A device's table, as words: where each list begins, then the lists.
struct ExchangeTable {
  /// Some elements that one rank sends to one other.
  struct Piece {
    u64 rank;   ///< of the world: the other one
    u64 first;  ///< number of its first element among all that the device sends, or receives
    u64 count;
    u64 there;   ///< sender: the first element's place in the receiver's memory for arrivals
    u64 credit;  ///< word of the sender's device that says how often the piece was taken, or none
    u64 place;   ///< of the first element in this device's array; the others lie behind it
  };
  static constexpr u64 scattered = ~u64{0};  ///< as `place`: they are where the list says
  static constexpr u64 none = ~u64{0};       ///< as `credit`: the devices send to each other
  static constexpr u64 piece_words = sizeof(Piece) / sizeof(u64);

  // Words of the header.
  static constexpr u64 size = 0;         ///< elements of the part's memory
  static constexpr u64 sends = 1;        ///< begins of the lists that follow
  static constexpr u64 send_begins = 2;  ///< by local rank, and the end: its pieces
  static constexpr u64 receives = 3;
  static constexpr u64 receive_begins = 4;
  static constexpr u64 sent = 5;      ///< by number: places that elements are taken from,
  static constexpr u64 received = 6;  ///< and that they go to, if a piece is scattered
  /// If several elements go to one place: each place once, where its arrivals begin, and these.
  /// Otherwise `targets` is 0.
  static constexpr u64 targets = 7, target_count = 8, arrivals_begin = 9, arrivals = 10;
  /// If all ranks pack together, or take together: the number of all elements. Otherwise 0.
  static constexpr u64 packed_together = 11, taken_together = 12;
  static constexpr u64 header = 13;
};

/// Combines by taking what has come.
struct Replace {
  template <class T>
  MESHPOST_FN T operator()(T const& /*old*/, T const& come) const {
    return come;
  }
};

}  // namespace detail

/// A plan with memory on the devices of a World, for elements of type T: kernels carry it out. Part
/// p of the plan is the World's device p. A handle, which kernels copy; free_exchange() ends it.
/// A kernel uses one RankExchange over it at a time: a new one takes the place of the one before.
/// For several at once, make several of these by the same plan.
template <class T>
struct Exchange {
  Window<T> outgoing, arriving;
  Window<u64> credits;  ///< behind these, a word of each rank: 1 between start() and finish()
  Window<u64> table;
  u64 pitch = 0;  ///< elements of one of the two halves of `arriving`
};

/// A rank that takes part in exchanges, in a kernel:
///
///     RankExchange<double> halo(self, exchange);
///     for (...) {
///       halo.start(x);    // x: this device's elements, then its halo; the same at all its ranks
///       ...               // work that needs no halo
///       halo.finish(x);   // now the halo is that of this step
///     }
///
/// All ranks of all devices call each function, and all their threads, with equal arguments on each
/// device. The ranks of a device share its part of the work.
template <class T>
class RankExchange {
 public:
  /// `exchange` must live as long as this, as a kernel's member does.
  /// Order: two barriers of the world. Errors: an exchange of another World, or none.
  MESHPOST_FN RankExchange(Rank& self, Exchange<T> const& exchange);
  RankExchange(Rank& self, Exchange<T> const&& exchange) = delete;

  /// Sends what other parts need. `source` must not change before finish() has returned.
  /// Order:  it begins with a barrier of the device. So elements may have been stored by any of its
  ///         ranks before.
  /// Errors: a source without room for the plan's part; a start() of this object, or of another one
  ///         over the same Exchange, before finish().
  MESHPOST_FN void start(LocalSpan<T const> source);
  /// Waits for what other parts have sent, and stores it to its places: into the halo, by a plan
  /// that is not reversed. `target` may be another array than the source; its own
  /// elements stay as they are.
  /// Order:  it ends with a barrier of the device. All its ranks may then read all of `target`.
  /// Errors: a target without room for the plan's part; no start() before.
  MESHPOST_FN void finish(LocalSpan<T> target) { finish(target, detail::Replace{}); }
  /// The same, with target = combine(target, come) for each element that comes. For reversed plans,
  /// where an element may come from several parts: they are combined one after the other, in the
  /// order of the parts. So the result does not depend on time.
  template <class Combine>
  MESHPOST_FN void finish(LocalSpan<T> target, Combine&& combine);

  MESHPOST_FN RankExchange(RankExchange const&) = delete;
  MESHPOST_FN RankExchange& operator=(RankExchange const&) = delete;

 private:
  using Table = detail::ExchangeTable;

  /// Some that this rank has.
  struct Pieces {
    u64 const* first = nullptr;
    u32 count = 0;
  };

  MESHPOST_FN u64 word(u64 number) const { return table_[number]; }
  MESHPOST_FN Table::Piece piece(Pieces const& pieces, u32 number) const {
    u64 const* const at = pieces.first + number * Table::piece_words;
    return {at[0], at[1], at[2], at[3], at[4], at[5]};
  }
  MESHPOST_FN Table::Piece first_of(Pieces const& pieces) const {
    return pieces.count == 0 ? Table::Piece{} : piece(pieces, 0);
  }
  /// The list of a piece's places, or null if they are consecutive.
  MESHPOST_FN u64 const* places_of(Table::Piece const& piece, u64 list) const {
    return piece.place == Table::scattered ? table_ + word(list) + piece.first : nullptr;
  }
  /// True if this rank sends the piece to itself.
  MESHPOST_FN bool own(Table::Piece const& piece) const { return piece.rank == self_->id(); }
  MESHPOST_FN bool has_credit(Table::Piece const& piece) const {
    return piece.credit != Table::none;
  }
  /// Some of the device's elements.
  struct Share {
    u64 first, count;
  };
  /// This rank's of so many.
  MESHPOST_FN Share share_of(u64 elements) const {
    u64 const ranks = self_->local_size(), me = self_->local_id();
    u64 const first = elements * me / ranks;
    return {first, elements * (me + 1) / ranks - first};
  }
  /// In this step, from the element with this number on.
  MESHPOST_FN T const* arrived(u64 number) const {
    return arriving_.data() + step_ % 2 * exchange_.pitch + number;
  }
  MESHPOST_FN void check(u64 elements, bool started, char const* what);
  template <class Work>
  MESHPOST_FN void each_piece(Pieces const& pieces, Table::Piece const& head, Work&& work) const;
  MESHPOST_FN void pack_together(LocalSpan<T const> source);
  MESHPOST_FN void send(Table::Piece const& piece, LocalSpan<T const> source);
  template <class Combine>
  MESHPOST_FN void take(Table::Piece const& piece, LocalSpan<T> target, Combine& combine);
  template <class PlaceOf, class Combine>
  MESHPOST_FN void take(u64 first, u64 count, PlaceOf const& place_of, LocalSpan<T> target,
                        Combine& combine);
  template <class Combine>
  MESHPOST_FN void take_together(LocalSpan<T> target, Combine& combine);
  template <class Combine>
  MESHPOST_FN void take_by_place(LocalSpan<T> target, Combine& combine);
  MESHPOST_FN void give_credit();

  Rank* self_;
  // Not a copy: kernels read it where it is, in constant memory.
  Exchange<T> const& exchange_;
  u64 const* table_;
  LocalSpan<T> arriving_;
  // Words of the table that each step needs.
  u64 size_ = 0;
  bool by_piece_ = false;
  u64 packed_together_ = 0, taken_together_ = 0;
  bool gives_credit_ = false;
  u32 coming_ = 0;       ///< pieces from other ranks
  u64* busy_ = nullptr;  ///< this rank's word
  Pieces sends_{}, receives_{};
  u64 step_ = 0;
  bool started_ = false;
};

#if !defined(__CUDACC_RTC__)

namespace detail {
/// \throws Error(bad_argument) if the parts of the plan are not the devices of the World
void check_parts(World const& world, Plan const& plan, char const* operation);
/// Words that the table of any part has, at most.
u64 exchange_table_words(Plan::Most const& most, u32 ranks, u64 element);
/// Of a part of this process.
std::vector<u64> exchange_table(World const& world, PartPlan const& part, u64 element);
}  // namespace detail

/// Ends an exchange. Collective, as World::free.
template <class T>
void free_exchange(World& world, Exchange<T> const& exchange) {
  auto const end = [&](auto const& window) {
    if (window.info().number != 0) world.free(window);
  };
  end(exchange.outgoing), end(exchange.arriving), end(exchange.credits), end(exchange.table);
}

/// Memory and tables for kernels that carry out `plan`. Collective, as World::window.
/// \throws Error(bad_argument) if the plan's parts are not the devices of the World; Error(misuse)
/// if processes give different plans; as World::window
template <class T>
Exchange<T> make_exchange(World& world, Plan const& plan, std::string const& name = "exchange") {
  detail::check_parts(world, plan, "make_exchange");
  u32 const parts = world.device_count(), ranks = world.ranks_per_device();
  auto const most = plan.most();
  auto const named = [&](char const* what) { return "exchange '" + name + "' (" + what + ")"; };
  Exchange<T> exchange;
  exchange.pitch = most.received;
  try {
    // Names must be equal in all processes, so this one finds plans that differ.
    auto const table = "table of plan " + std::to_string(plan.fingerprint());
    exchange.table =
        world.window<u64>(shared_parts(world, detail::exchange_table_words(most, ranks, sizeof(T))),
                          Tags{0}, named(table.c_str()));
    exchange.credits = world.window<u64>(shared_parts(world, u64{parts + 1} * ranks), Tags{0},
                                         named("what was taken"));
    exchange.outgoing = world.window<T>(shared_parts(world, most.sent), Tags{0}, named("outgoing"));
    exchange.arriving =
        world.window<T>(shared_parts(world, 2 * most.received), Tags{2}, named("arriving"));
  } catch (...) {  // in all processes alike
    free_exchange(world, exchange);
    throw;
  }
  for (u32 i = 0; i < plan.part_count(); ++i) {
    u32 const part = plan.first_part() + i;
    auto const table = detail::exchange_table(world, plan.of(part), sizeof(T));
    exchange.table.write(RankId{part * ranks}, 0, std::span<u64 const>(table));
  }
  return exchange;
}
#endif

}  // namespace meshpost

#include "meshpost/array/detail/exchange.hpp"
