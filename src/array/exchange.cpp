// The tables by which kernels carry out a plan (array/exchange.hpp).
#include "meshpost/array/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "meshpost/base/error.hpp"

namespace meshpost::detail {
namespace {

using Table = ExchangeTable;

// Shorter pieces would cost more in messages than several ranks save.
constexpr u64 least_piece = u64{4} << 10;  // bytes

// How both ends cut the elements of an entry: into as many pieces as there are ranks, at most.
u64 pieces_of(PlanEntry const& entry, u32 ranks, u64 element) {
  u64 const bytes = entry.count * element;
  return std::clamp<u64>((bytes + least_piece - 1) / least_piece, 1,
                         std::min<u64>(ranks, entry.count));
}

// Pieces by the local rank that has them.
class Pieces {
 public:
  explicit Pieces(u32 ranks) : by_rank_(ranks) {}

  // `here`: the rank of the first piece here; `there`: at the other part. `place`: of the first
  // element at the receiver. `credit`: word of the first piece.
  void add(PlanEntry const& entry, u64 element, u64 here, u64 there, u64 place, u64 credit) {
    u64 const ranks = by_rank_.size();
    u64 const count = pieces_of(entry, static_cast<u32>(ranks), element);
    for (u64 i = 0; i < count; ++i) {
      u64 const begin = entry.count * i / count, end = entry.count * (i + 1) / count;
      by_rank_[(here + i) % ranks].push_back({.rank = entry.part * ranks + (there + i) % ranks,
                                              .first = entry.offset + begin,
                                              .count = end - begin,
                                              .there = place + begin,
                                              .credit = credit + i});
    }
  }
  void append(std::vector<u64>& table, u64 pieces, u64 begins) const {
    table[pieces] = table.size();
    for (auto const& rank : by_rank_)
      for (auto const& [other, first, count, there, credit] : rank)
        table.insert(table.end(), {other, first, count, there, credit});
    table[begins] = table.size();
    u64 before = 0;
    table.push_back(before);
    for (auto const& rank : by_rank_) table.push_back(before += rank.size());
  }

 private:
  std::vector<std::vector<Table::Piece>> by_rank_;
};

void append(std::vector<u64>& table, u64 word, std::span<u64 const> list) {
  table[word] = table.size();
  table.insert(table.end(), list.begin(), list.end());
}

// Each place once, with the numbers of the elements that go there, in their order.
void append_targets(std::vector<u64>& table, std::vector<u64> const& places) {
  std::vector<u64> order(places.size()), targets, begins;
  std::iota(order.begin(), order.end(), u64{0});
  std::ranges::sort(order, std::less(),
                    [&](u64 number) { return std::pair(places[number], number); });
  for (u64 k = 0; k < order.size(); ++k)
    if (k == 0 || places[order[k]] != targets.back()) {
      targets.push_back(places[order[k]]);
      begins.push_back(k);
    }
  begins.push_back(order.size());
  table[Table::target_count] = targets.size();
  append(table, Table::targets, targets);
  append(table, Table::arrivals_begin, begins);
  append(table, Table::arrivals, order);
}

}  // namespace

void check_parts(World const& world, Plan const& plan) {
  u32 const first = world.first_rank() / world.ranks_per_device();
  auto const here = world.devices().size();
  if (plan.distribution().parts() == world.device_count() && plan.first_part() == first &&
      plan.part_count() == here)
    return;
  throw Error(
      Kind::bad_argument, "make_exchange",
      fmt::format("the plan has {} parts, here {} from {} on; the World has {} devices, here "
                  "{} from {} on",
                  plan.distribution().parts(), plan.part_count(), plan.first_part(),
                  world.device_count(), here, first),
      "give each device one part, in the order of the devices");
}

// An entry has a piece for each 4 KiB, and one more at most.
u64 exchange_table_words(Plan::Most const& most, u32 ranks, u64 element) {
  u64 const pieces = 2 * most.entries + (most.sent + most.received) * element / least_piece;
  return Table::header + pieces * Table::piece_words + 2 * (u64{ranks} + 1) + most.sent +
         3 * most.received + 1;
}

std::vector<u64> exchange_table(PartPlan const& part, u32 ranks, u64 element) {
  std::vector<u64> table(Table::header);
  table[Table::size] = part.size();
  Pieces sends(ranks), receives(ranks);
  // Piece i of a message from p to q: rank q + i of p sends it, rank p + i of q takes it.
  for (auto const& one : part.sends)
    sends.add(one, element, one.part, part.part, one.there, u64{one.part} * ranks);
  for (auto const& one : part.receives)
    receives.add(one, element, one.part, part.part, 0, u64{part.part} * ranks);
  sends.append(table, Table::sends, Table::send_begins);
  receives.append(table, Table::receives, Table::receive_begins);
  if (part.sent.consecutive()) table[Table::sent_first] = part.sent.first;
  else append(table, Table::sent, part.sent.list);
  if (part.received.consecutive()) {
    table[Table::first_received] = part.received.first;
  } else {
    append_targets(table, part.received.list);
    table[Table::received] = table[Table::targets];
  }
  return table;
}

}  // namespace meshpost::detail
