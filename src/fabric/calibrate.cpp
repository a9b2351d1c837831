#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "fabric/host_copy.hpp"
#include "fabric/host_ways.hpp"
#include "fabric/measure.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost {
namespace {

using fabric::TestGround;

constexpr u64 past_caches = u64{64} << 20;  // a caller that asks for so much has the time
constexpr u64 smallest = 8;                 // bytes of the copies that measure latencies
constexpr u64 page = 4096;

// The driver's own way through the host is several times slower, so fewer bytes show its rate.
Bytes large_for(Link const& link, Bytes large) {
  return link.mover == Mover::through_host ? Bytes{std::max(page, large / 4)} : large;
}

// Links between the same two memories, by the same means, are measured as one.
using Likeness = std::tuple<std::string, std::string, Mover>;
Likeness likeness(TestGround const& ground, Link const& link) {
  return {ground.memory_of(link.from), ground.memory_of(link.to), link.mover};
}

void measure_alone(TestGround& ground, Link& link, CalibrationOptions const& options) {
  u32 const often = std::max(21u, options.repetitions);
  auto const bytes = large_for(link, options.large);
  double const small = time_alone(ground, link, Bytes{smallest}, often);
  double const whole = time_alone(ground, link, bytes, options.repetitions);
  link.latency = small;
  // The time of the bytes alone. A disturbed clock must not give an endless rate.
  link.rate = static_cast<double>(bytes) / std::max(whole - small, whole / 2);
}

void measure_both_ways(TestGround& ground, Link& link, Link& back,
                       CalibrationOptions const& options) {
  // In halves of each area, because both may be within one memory.
  Bytes const half{large_for(link, options.large) / 2 / page * page};
  std::vector<TestGround::Trip> const trips{{&link, half, {}}, {&back, half, half}};
  double const time = time_together(ground, trips, options.repetitions);
  link.rate_both_ways = static_cast<double>(half) / time;
  back.rate_both_ways = link.rate_both_ways;
}

// Links that count for the total rate out of or into a place. They are the copy engines' links, if
// there are any: the host's threads would only disturb them. There is one for each memory at the
// other end.
std::vector<Link const*> links_at_once(TestGround const& ground, Machine const& machine, u32 place,
                                       bool out) {
  std::map<std::string, Link const*> chosen;
  auto const collect = [&](bool engines) {
    for (auto const& link : machine.links) {
      if ((out ? link.from : link.to) != place || link.from == link.to) continue;
      if (engines != (link.mover == Mover::copy_engine)) continue;
      auto& best = chosen[ground.memory_of(out ? link.to : link.from)];
      if (!best || link.rate > best->rate) best = &link;
    }
  };
  collect(true);
  if (chosen.empty()) collect(false);
  std::vector<Link const*> links;
  links.reserve(chosen.size());
  for (auto const& [memory, link] : chosen) links.push_back(link);
  return links;
}

double measure_at_once(TestGround& ground, std::vector<Link const*> const& links,
                       CalibrationOptions const& options) {
  if (links.empty()) return 0;
  double sum = 0;
  for (auto const* const link : links) sum += link->rate;
  // Shares by rate, so that all end together. They lie side by side, because all may have one
  // target.
  std::vector<TestGround::Trip> trips;
  u64 offset = 0;
  for (auto const* const link : links) {
    auto const share = static_cast<u64>(static_cast<double>(options.large) * link->rate / sum);
    trips.push_back({link, Bytes{std::max(page, share / page * page)}, Bytes{offset}});
    offset += trips.back().bytes;
  }
  return static_cast<double>(offset) / time_together(ground, trips, options.repetitions);
}

void measure_links(TestGround& ground, Machine& machine, CalibrationOptions const& options) {
  std::map<Likeness, Link const*> known;
  for (auto& link : machine.links) {
    auto& like = known[likeness(ground, link)];
    if (!like) {
      measure_alone(ground, link, options);
      like = &link;
    }
    link.latency = like->latency;
    link.rate = like->rate;
  }
}

void measure_pairs(TestGround& ground, Machine& machine, CalibrationOptions const& options) {
  std::map<Likeness, double> known;
  for (auto& link : machine.links) {
    auto const back = std::ranges::find_if(machine.links, [&](Link const& other) {
      return other.from == link.to && other.to == link.from && other.mover == link.mover;
    });
    if (back == machine.links.end()) continue;
    auto [found, fresh] = known.try_emplace(likeness(ground, link));
    if (fresh) {
      measure_both_ways(ground, link, *back, options);
      found->second = link.rate_both_ways;
      known.try_emplace(likeness(ground, *back), link.rate_both_ways);
    }
    link.rate_both_ways = found->second;
  }
}

void measure_places(TestGround& ground, Machine& machine, CalibrationOptions const& options) {
  std::map<std::string, PlaceInfo const*> known;
  for (u32 i = 0; i < machine.places.size(); ++i) {
    auto& place = machine.places[i];
    bool const engines = !links_at_once(ground, machine, i, true).empty();
    auto& like = known[ground.memory_of(i)];
    if (!like && engines) {
      place.rate_out = measure_at_once(ground, links_at_once(ground, machine, i, true), options);
      place.rate_in = measure_at_once(ground, links_at_once(ground, machine, i, false), options);
      like = &place;
    }
    if (!like) continue;
    place.rate_out = like->rate_out;
    place.rate_in = like->rate_in;
  }
}

}  // namespace

void calibrate(Machine& machine, std::vector<std::shared_ptr<Device>> const& devices,
               CalibrationOptions const& options) {
  if (machine.fingerprint != fingerprint(devices))
    throw Error(
        Kind::bad_environment, "calibrate",
        fmt::format("the machine is '{}', this is '{}'", machine.fingerprint, fingerprint(devices)),
        "calibrate what discover() found here, with the same devices");
  constexpr u64 least = u64{1} << 20, most = u64{1} << 34;
  if (options.large < least || options.large > most || options.repetitions == 0)
    throw Error(Kind::bad_argument, "calibrate",
                fmt::format("{} bytes, {} repetitions", options.large.value, options.repetitions),
                fmt::format("copy {} to {} bytes, at least once", least, most));
  // Shares of links that are measured at once are rounded up to pages.
  Bytes const room{options.large + page * machine.places.size()};
  TestGround ground(machine, devices, room);
  // First, because links within host memory are then measured by the best way.
  machine.host_copies = fabric::measure_host_ways(
      fabric::ThreadTeam::shared(),
      options.large >= past_caches ? Bytes{options.large * 4} : options.large);
  fabric::use_host_rates(machine.host_copies);
  measure_links(ground, machine, options);
  measure_pairs(ground, machine, options);
  measure_places(ground, machine, options);
}

}  // namespace meshpost
