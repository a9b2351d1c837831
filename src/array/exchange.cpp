// The tables by which kernels carry out a plan (array/exchange.hpp).
#include "meshpost/array/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "array/exchange_lists.hpp"
#include "meshpost/base/error.hpp"
#include "rma/world_state.hpp"

namespace meshpost::detail {
namespace {

using Table = ExchangeTable;

// Shorter pieces would cost more in messages than several ranks save. Out of reach, hosts carry one
// after the other.
constexpr u64 least_near = u64{4} << 10, least_far = u64{256} << 10;  // bytes

// How both ends cut the elements of an entry: into as many pieces as there are ranks, at most.
u64 pieces_of(PlanEntry const& entry, u32 ranks, u64 element, bool far) {
  u64 const bytes = entry.count * element, least_piece = far ? least_far : least_near;
  return std::clamp<u64>((bytes + least_piece - 1) / least_piece, 1,
                         std::min<u64>(ranks, entry.count));
}

// Pieces by the local rank that has them.
class Pieces {
 public:
  // `here`, `places`: the part, and its places for all elements that it sends, or receives.
  // `element`: its size.
  Pieces(u32 ranks, u32 here, Places const& places, u64 element)
      : by_rank_(ranks), here_(here), places_(places), element_(element) {}

  // `number`: of the first element at the receiver. `credits`: the first word for the sender's
  // pieces; none if they need no credit. `far`: the other part is out of reach.
  void add(PlanEntry const& entry, u64 number, u64 credits, bool far) {
    u64 const ranks = by_rank_.size();
    u64 const count = pieces_of(entry, static_cast<u32>(ranks), element_, far);
    // Piece i of a message from p to q: rank q + i of p sends it, rank p + i of q takes it.
    u64 const here = entry.part, there = here_;
    for (u64 i = 0; i < count; ++i) {
      u64 const begin = entry.count * i / count, end = entry.count * (i + 1) / count;
      by_rank_[(here + i) % ranks].push_back(
          {.rank = entry.part * ranks + (there + i) % ranks,
           .first = entry.offset + begin,
           .count = end - begin,
           .there = number + begin,
           .credit = credits == Table::none ? credits : credits + i,
           .place = places_.consecutive(entry.offset + begin, entry.offset + end)
                        ? places_[entry.offset + begin]
                        : Table::scattered});
      bool const scattered = by_rank_[(here + i) % ranks].back().place == Table::scattered;
      scattered_ |= scattered;
      scattered_far_ |= scattered && far;
    }
  }
  // True if any is; any to or from a part out of reach.
  bool scattered() const { return scattered_; }
  bool scattered_far() const { return scattered_far_; }
  void append(std::vector<u64>& table, u64 pieces, u64 begins) const {
    table[pieces] = table.size();
    for (auto const& rank : by_rank_)
      for (auto const& [other, first, count, there, credit, place] : rank)
        table.insert(table.end(), {other, first, count, there, credit, place});
    table[begins] = table.size();
    u64 before = 0;
    table.push_back(before);
    for (auto const& rank : by_rank_) table.push_back(before += rank.size());
  }

 private:
  std::vector<std::vector<Table::Piece>> by_rank_;
  u32 here_;
  Places const& places_;
  u64 element_;
  bool scattered_ = false, scattered_far_ = false;
};

void append(std::vector<u64>& table, u64 word, std::span<u64 const> list) {
  table[word] = table.size();
  table.insert(table.end(), list.begin(), list.end());
}

// True if several elements go to one place.
bool repeated(std::vector<u64> places) {
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) != places.end();
}

void append_targets(std::vector<u64>& table, std::vector<u64> const& places) {
  ExchangeTargets const targets(places);
  table[Table::target_count] = targets.places.size();
  append(table, Table::targets, targets.places);
  append(table, Table::arrivals_begin, targets.begins);
  append(table, Table::arrivals, targets.numbers);
}

}  // namespace

ExchangeTargets::ExchangeTargets(std::vector<u64> const& all) : numbers(all.size()) {
  std::iota(numbers.begin(), numbers.end(), u64{0});
  std::ranges::sort(numbers, std::less(),
                    [&](u64 number) { return std::pair(all[number], number); });
  for (u64 k = 0; k < numbers.size(); ++k)
    if (k == 0 || all[numbers[k]] != places.back()) {
      places.push_back(all[numbers[k]]);
      begins.push_back(k);
    }
  begins.push_back(numbers.size());
}

void check_parts(World const& world, Plan const& plan, char const* operation) {
  u32 const first = world.first_rank() / world.ranks_per_device();
  auto const here = world.devices().size();
  if (plan.distribution().parts() == world.device_count() && plan.first_part() == first &&
      plan.part_count() == here)
    return;
  throw Error(
      Kind::bad_argument, operation,
      fmt::format("the plan has {} parts, here {} from {} on; the World has {} devices, here "
                  "{} from {} on",
                  plan.distribution().parts(), plan.part_count(), plan.first_part(),
                  world.device_count(), here, first),
      "give each device one part, in the order of the devices");
}

// An entry has a piece for each 4 KiB, and one more at most.
u64 exchange_table_words(Plan::Most const& most, u32 ranks, u64 element) {
  u64 const pieces = 2 * most.entries + (most.sent + most.received) * element / least_near;
  return Table::header + pieces * Table::piece_words + 2 * (u64{ranks} + 1) + most.sent +
         3 * most.received + 1;
}

std::vector<u64> exchange_table(World const& world, PartPlan const& part, u64 element) {
  u32 const ranks = world.ranks_per_device();
  auto const state = world_of(world.communicator().world, "make_exchange");
  u32 const own = part.part - world.first_rank() / ranks;
  auto const far = [&](u32 other) { return state->layout().far(own, other); };
  // Words at the sender, by receiver.
  auto const credits = [&](u32 other, u32 receiver, std::vector<PlanEntry> const& back) {
    bool const both = std::ranges::binary_search(back, other, std::less(), &PlanEntry::part);
    return both ? Table::none : u64{receiver} * ranks;
  };
  std::vector<u64> table(Table::header);
  table[Table::size] = part.size();
  Pieces sends(ranks, part.part, part.sent, element);
  Pieces receives(ranks, part.part, part.received, element);
  for (auto const& one : part.sends)
    sends.add(one, one.there, credits(one.part, one.part, part.receives), far(one.part));
  for (auto const& one : part.receives)
    receives.add(one, 0, credits(one.part, part.part, part.sends), far(one.part));
  sends.append(table, Table::sends, Table::send_begins);
  receives.append(table, Table::receives, Table::receive_begins);
  if (sends.scattered()) append(table, Table::sent, part.sent.list);
  if (sends.scattered_far()) table[Table::packed_together] = part.sent.list.size();
  if (repeated(part.received.list)) return append_targets(table, part.received.list), table;
  if (receives.scattered()) append(table, Table::received, part.received.list);
  if (receives.scattered_far()) table[Table::taken_together] = part.received.list.size();
  return table;
}

}  // namespace meshpost::detail
