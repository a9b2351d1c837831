#include "meshpost/copy/route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "copy/search.hpp"
#include "meshpost/base/error.hpp"

namespace meshpost {
namespace {

using copying::Found;

u32 position(Machine const& machine, Place const& place) {
  if (auto const found = machine.find(place)) return *found;
  std::string names;
  for (auto const& info : machine.places) names += (names.empty() ? "" : ", ") + info.place.name();
  throw Error(Kind::bad_argument, "plan_route",
              fmt::format("{} is not a place of this machine", place.name()),
              fmt::format("it has {}", names.empty() ? "none" : names));
}

// Chains with shares that end together: fixed_i + share_i / rate_i is the same for all. The total
// rates of the two ends slow all of them alike.
Route balance(Machine const& machine, u32 from, u32 to, std::vector<Found> chains, u64 size) {
  double limit = std::numeric_limits<double>::infinity();
  if (auto const rate = machine.places[from].rate_out; rate > 0) limit = rate;
  if (auto const rate = machine.places[to].rate_in; rate > 0) limit = std::min(limit, rate);
  if (chains.size() == 1)
    return {{{chains[0].links, Bytes{size}, Bytes{chains[0].chunk}}},
            chains[0].cost.seconds(size, chains[0].chunk)};
  std::vector<double> rates, fixed;
  double sum = 0;
  for (auto const& chain : chains) {
    // A single link also takes its share in chunks if there are others, so that it ends with them.
    rates.push_back(chain.cost.rate(chain.chunk));
    fixed.push_back(chain.cost.fill - chain.cost.step);
    sum += rates.back();
  }
  if (sum > limit)
    for (auto& rate : rates) rate *= limit / sum;
  double bytes = double(size), all = 0;
  for (u64 i = 0; i < chains.size(); ++i) bytes += fixed[i] * rates[i], all += rates[i];
  Route route;
  route.predicted = bytes / all;
  u64 given = 0;
  for (u64 i = 0; i < chains.size(); ++i) {
    double const share = std::max(0.0, (route.predicted - fixed[i]) * rates[i]);
    u64 const whole = std::min(size - given, static_cast<u64>(share) / 4096 * 4096);
    route.chains.push_back({chains[i].links, Bytes{whole}, Bytes{chains[i].chunk}});
    given += whole;
  }
  route.chains.front().share.value += size - given;  // bytes left by rounding
  return route;
}

// Routes of one chain, two, three, ... as long as each chain has work for many chunks.
std::vector<Route> growing(Machine const& machine, u32 from, u32 to, u64 size) {
  constexpr u64 several = u64{8} << 20;  // below this, chains end before they are full
  std::vector<Route> routes;
  std::vector<Found> chains;
  copying::Used used;
  while (auto found = copying::cheapest_chain(machine, from, to, size, used)) {
    used.add(machine, found->links);
    chains.push_back(*found);
    auto parts = chains;
    if (parts.size() > 1)
      for (auto& part : parts)
        if (part.links.size() == 1) {
          part.chunk = u64{4} << 20;
          part.cost = copying::chain_cost(machine, part.links, part.chunk);
        }
    routes.push_back(balance(machine, from, to, parts, size));
    if (from == to || size / (chains.size() + 1) < several) break;
    if (std::ranges::any_of(routes.back().chains, [](auto const& c) { return c.share == 0; })) {
      routes.pop_back();
      break;
    }
  }
  return routes;
}

// The direct way, unless others are faster by a quarter: they take threads and links that others
// may need. Otherwise the fastest. Of routes with about the same time, it takes the one with most
// chains. If the ends limit the sum, links share something that the machine does not show, and
// nobody knows which ones.
u64 choose(std::vector<Route> const& routes) {
  u64 best = 0;
  for (u64 i = 1; i < routes.size(); ++i)
    if (routes[i].predicted < routes[best].predicted) best = i;
  double const shortest = routes[best].predicted;
  if (routes[0].predicted < 1.25 * shortest) return 0;
  for (u64 i = best; i < routes.size(); ++i)
    if (routes[i].predicted <= shortest * 1.02) best = i;
  return best;
}

std::vector<Route> possible(Machine const& machine, Place const& source, Place const& target,
                            Bytes size) {
  u32 const from = position(machine, source), to = position(machine, target);
  auto routes = growing(machine, from, to, size);
  if (routes.empty())
    throw Error(Kind::no_route, "plan_route",
                fmt::format("no chain of links leads from {} to {}", source.name(), target.name()),
                "meshpost-topo shows the links; measure the machine again if some are missing");
  return routes;
}

}  // namespace

Route plan_route(Machine const& machine, Place const& source, Place const& target, Bytes size) {
  auto routes = possible(machine, source, target, size);
  return routes[choose(routes)];
}

std::vector<Candidate> candidates(Machine const& machine, Place const& source, Place const& target,
                                  Bytes size) {
  auto routes = possible(machine, source, target, size);
  auto const chosen = routes[choose(routes)];
  routes.erase(routes.begin() + static_cast<i64>(choose(routes)));
  // Each way also alone: single links, and the best chain without them.
  u32 const from = position(machine, source), to = position(machine, target);
  auto const known = [&](std::vector<u32> const& links) {
    auto const same = [&](Route const& r) {
      return r.chains.size() == 1 && r.chains[0].links == links;
    };
    return same(chosen) || std::ranges::any_of(routes, same);
  };
  copying::Used used;
  while (auto const found = copying::cheapest_chain(machine, from, to, size, used)) {
    used.add(machine, found->links);
    if (!known(found->links)) routes.push_back(balance(machine, from, to, {*found}, size));
  }
  for (u32 l = 0; l < machine.links.size(); ++l)
    if (machine.links[l].from == from && machine.links[l].to == to && !known({l})) {
      auto const cost = copying::chain_cost(machine, {l}, size);
      routes.push_back({{{{l}, size, size}}, cost.fill});
    }
  std::ranges::sort(routes, {}, &Route::predicted);
  std::vector<Candidate> all{{chosen, "chosen"}};
  for (auto const& route : routes) {
    double const times = route.predicted / std::max(chosen.predicted, 1e-12);
    bool const more = route.chains.size() > chosen.chains.size();
    all.push_back({route, times >= 1.02 ? fmt::format("{:.2f} times as long", times)
                          : more        ? "gains less than a fourth"
                                        : "as long, with fewer ways"});
  }
  return all;
}

}  // namespace meshpost
