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
    u64 credit;  ///< word of the sender's device that says how often the piece was taken
  };
  static constexpr u64 piece_words = sizeof(Piece) / sizeof(u64);

  // Words of the header.
  static constexpr u64 size = 0;         ///< elements of the part's memory
  static constexpr u64 sends = 1;        ///< begins of the lists that follow
  static constexpr u64 send_begins = 2;  ///< by local rank, and the end: its pieces
  static constexpr u64 receives = 3;
  static constexpr u64 receive_begins = 4;
  static constexpr u64 sent = 5;            ///< places that elements are taken from
  static constexpr u64 received = 6;        ///< places that they go to; 0: consecutive ones
  static constexpr u64 first_received = 7;  ///< the first of these
  static constexpr u64 sent_first = 8;      ///< if `sent` is 0
  /// If there is a list of `received`: each place once, where its arrivals begin, and these.
  static constexpr u64 targets = 9, target_count = 10, arrivals_begin = 11, arrivals = 12;
  static constexpr u64 header = 13;
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
  /// Order: two barriers of the world. Errors: an exchange of another World, or none.
  MESHPOST_FN RankExchange(Rank& self, Exchange<T> const& exchange);

  /// Sends what other parts need. `source` must not change before finish() has returned.
  /// Order:  it begins with a barrier of the device. So elements may have been stored by any of its
  ///         ranks before.
  /// Errors: a source without room for the plan's part; a start() of this object, or of another one
  ///         over the same Exchange, before finish().
  MESHPOST_FN void start(LocalSpan<T const> source);
  /// Waits for what other parts have sent, and stores it to its places: after Plan::from_indices()
  /// and from_pattern() into the halo. `target` may be another array than the source; its own
  /// elements stay as they are.
  /// Order:  it ends with a barrier of the device. All its ranks may then read all of `target`.
  /// Errors: a target without room for the plan's part; no start() before.
  MESHPOST_FN void finish(LocalSpan<T> target) {
    finish(target, [](T const& /*old*/, T const& come) { return come; });
  }
  /// The same, with target = combine(target, come) for each element that comes. For reversed plans,
  /// where an element may come from several parts: they are combined one after the other, in the
  /// order of the parts. So the result does not depend on time.
  template <class Combine>
  MESHPOST_FN void finish(LocalSpan<T> target, Combine&& combine);

  MESHPOST_FN RankExchange(RankExchange const&) = delete;
  MESHPOST_FN RankExchange& operator=(RankExchange const&) = delete;

 private:
  using Table = detail::ExchangeTable;

  MESHPOST_FN u64 word(u64 number) const { return table_[number]; }
  MESHPOST_FN void check(u64 elements, bool started, char const* what);
  template <class Work>
  MESHPOST_FN void each_piece(u64 pieces, u64 begins, Work&& work) const;
  template <class Combine>
  MESHPOST_FN void take_pieces(LocalSpan<T> target, Combine& combine);
  template <class Combine>
  MESHPOST_FN void take_by_place(LocalSpan<T> target, Combine& combine);
  MESHPOST_FN void give_credit();
  /// This rank's word.
  MESHPOST_FN u64& busy() const {
    auto const words = exchange_.credits.local(*self_);
    return words[words.size() - self_->local_size() + self_->local_id()];
  }

  Rank* self_;
  Exchange<T> exchange_;
  u64 const* table_;
  LocalSpan<T> arriving_;
  u64 step_ = 0;
  bool started_ = false;
};

#if !defined(__CUDACC_RTC__)

namespace detail {
/// \throws Error(bad_argument) if the parts of the plan are not the devices of the World
void check_parts(World const& world, Plan const& plan);
/// Words that the table of any part has, at most.
u64 exchange_table_words(Plan::Most const& most, u32 ranks, u64 element);
std::vector<u64> exchange_table(PartPlan const& part, u32 ranks, u64 element);
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
  detail::check_parts(world, plan);
  u32 const parts = world.device_count(), ranks = world.ranks_per_device();
  auto const most = plan.most();
  // Names must be equal in all processes.
  auto const named = name + " by plan " + std::to_string(plan.fingerprint());
  Exchange<T> exchange;
  exchange.pitch = most.received;
  try {
    exchange.credits = world.window<u64>(shared_parts(world, u64{parts + 1} * ranks), Tags{0},
                                         named + ", credits");
    exchange.outgoing =
        world.window<T>(shared_parts(world, most.sent), Tags{0}, named + ", outgoing");
    exchange.arriving =
        world.window<T>(shared_parts(world, 2 * most.received), Tags{2}, named + ", arriving");
    exchange.table =
        world.window<u64>(shared_parts(world, detail::exchange_table_words(most, ranks, sizeof(T))),
                          Tags{0}, named + ", table");
  } catch (...) {  // in all processes alike
    free_exchange(world, exchange);
    throw;
  }
  for (u32 i = 0; i < plan.part_count(); ++i) {
    u32 const part = plan.first_part() + i;
    auto const table = detail::exchange_table(plan.of(part), ranks, sizeof(T));
    exchange.table.write(RankId{part * ranks}, 0, std::span<u64 const>(table));
  }
  return exchange;
}
#endif

}  // namespace meshpost

#include "meshpost/array/detail/exchange.hpp"
