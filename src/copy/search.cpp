#include "copy/search.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace meshpost::copying {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr u64 smallest_chunk = u64{256} << 10, largest_chunk = u64{8} << 20;

// Dijkstra over links that take at most `limit` for a chunk.
std::vector<u32> least_sum(Machine const& machine, u32 from, u32 to,
                           std::vector<double> const& times, double limit,
                           std::vector<char> const& usable) {
  u64 const count = machine.places.size();
  std::vector<double> sum(count, infinite);
  std::vector<i64> arrived_by(count, -1);
  std::vector<char> settled(count, 0);
  sum[from] = 0;
  for (;;) {
    u64 next = count;
    for (u64 i = 0; i < count; ++i)
      if (!settled[i] && sum[i] < infinite && (next == count || sum[i] < sum[next])) next = i;
    if (next == count || next == to) break;
    settled[next] = 1;
    for (u32 l = 0; l < machine.links.size(); ++l) {
      auto const& link = machine.links[l];
      if (link.from != next || !usable[l] || times[l] > limit) continue;
      if (sum[next] + times[l] < sum[link.to]) {
        sum[link.to] = sum[next] + times[l];
        arrived_by[link.to] = l;
      }
    }
  }
  std::vector<u32> links;
  for (u32 at = to; at != from && arrived_by[at] >= 0; at = machine.links[links.back()].from)
    links.push_back(static_cast<u32>(arrived_by[at]));
  std::ranges::reverse(links);
  return links;
}

}  // namespace

double link_seconds(Link const& link, u64 bytes) {
  if (link.rate > 0) return link.latency + double(bytes) / link.rate;
  return 20e-6 + double(bytes) / (link.mover == Mover::copy_engine ? 20e9 : 5e9);
}

ChainCost chain_cost(Machine const& machine, std::vector<u32> const& links, u64 chunk) {
  ChainCost cost;
  double wake = waking_seconds;  // once
  for (u32 const l : links) {
    double const time = link_seconds(machine.links.at(l), chunk);
    cost.fill += time;
    cost.step = std::max(cost.step, time);
    if (links.size() > 1 && machine.links[l].mover == Mover::host_threads)
      cost.fill += std::exchange(wake, 0.0);
  }
  return cost;
}

bool can_relay(Place const& place) { return place.kind == "pinned" || !in_host_memory(place); }

std::vector<u64> Used::shared(Machine const& machine, Link const& link) {
  if (link.mover == Mover::host_threads) return {0};
  bool const from_host = in_host_memory(machine.places[link.from].place);
  bool const to_host = in_host_memory(machine.places[link.to].place);
  std::vector<u64> ways;
  bool const by_host = link.mover == Mover::through_host;
  if (from_host || by_host) ways.push_back(1 + 2 * u64{link.to});  // into that device
  if (to_host || by_host) ways.push_back(2 + 2 * u64{link.from});  // out of that device
  return ways;
}

void Used::add(Machine const& machine, std::vector<u32> const& links) {
  for (u64 i = 0; i < links.size(); ++i) {
    auto const& link = machine.links[links[i]];
    if (i + 1 < links.size()) places_.insert(link.to);
    for (u64 const way : shared(machine, link)) resources_.insert(way);
    // A chain of one link has nothing between its ends, so the link itself is marked as used.
    resources_.insert((u64{1} << 40) + links[i]);
  }
}

bool Used::allows(Machine const& machine, Link const& link, u32 target) const {
  if (link.to != target && places_.contains(link.to)) return false;
  if (resources_.contains((u64{1} << 40) + static_cast<u64>(&link - machine.links.data())))
    return false;
  return std::ranges::none_of(shared(machine, link),
                              [&](u64 way) { return resources_.contains(way); });
}

std::optional<Found> cheapest_chain(Machine const& machine, u32 from, u32 to, u64 size,
                                    Used const& used) {
  u64 const count = machine.links.size();
  std::vector<char> usable(count, 0);
  std::optional<Found> best;
  double best_time = infinite;
  auto const offer = [&](std::vector<u32> links, u64 chunk) {
    if (links.empty()) return;
    if (links.size() == 1) chunk = std::max<u64>(size, 1);
    auto const cost = chain_cost(machine, links, chunk);
    if (double const time = cost.seconds(size, chunk); time < best_time) {
      best_time = time;
      best = Found{std::move(links), chunk, cost};
    }
  };
  for (u32 l = 0; l < count; ++l) {
    auto const& link = machine.links[l];
    if (!used.allows(machine, link, to)) continue;
    if (link.from == from && link.to == to) offer({l}, size);
    else if (from != to && link.from != link.to && link.to != from && link.from != to)
      usable[l] = link.to == to || can_relay(machine.places[link.to].place);
  }
  if (from == to) return best;
  auto by_devices = usable;
  for (u32 l = 0; l < count; ++l)
    if (machine.links[l].mover == Mover::host_threads) by_devices[l] = 0;
  for (u64 chunk = smallest_chunk; chunk <= largest_chunk; chunk *= 2) {
    if (chunk / 2 >= size && chunk > smallest_chunk) break;  // the last was the whole as one chunk
    u64 const piece = std::min(chunk, std::max<u64>(size, 1));
    std::vector<double> times(count, infinite);
    std::set<double> limits;
    for (u32 l = 0; l < count; ++l)
      if (usable[l]) limits.insert(times[l] = link_seconds(machine.links[l], piece));
    for (double const limit : limits) {
      double const chunks = double(std::max(size, piece)) / double(piece);
      if (limit * chunks > best_time) break;  // the slowest link alone takes longer
      offer(least_sum(machine, from, to, times, limit, usable), piece);
      offer(least_sum(machine, from, to, times, limit, by_devices), piece);  // this wakes no thread
    }
  }
  return best;
}

}  // namespace meshpost::copying
