// Routes are plain values. They are planned for machines that are written down here, or drawn at
// random.
#include <algorithm>
#include <random>

#include "copy/places.hpp"
#include "copy/search.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

constexpr double GB = 1e9, us = 1e-6;
constexpr u64 MiB = u64{1} << 20, GiB = u64{1} << 30;

void link(Machine& machine, std::string const& from, std::string const& to, Mover mover,
          double latency, double rate) {
  machine.links.push_back({*machine.find(parse_place(from)), *machine.find(parse_place(to)), mover,
                           "", latency, rate, rate});
}

// A host with eight H200 GPUs as it was measured.
Machine h200() {
  Machine machine;
  for (auto const* const name : {"pageable:0", "pinned:0"}) {
    PlaceInfo info;
    info.place = parse_place(name);
    machine.places.push_back(info);
  }
  machine.places[1].rate_out = machine.places[1].rate_in = 175 * GB;
  for (u32 g = 0; g < 8; ++g) {
    PlaceInfo info;
    info.place = {"cuda", g};
    info.rate_in = info.rate_out = 430 * GB;
    machine.places.push_back(info);
  }
  link(machine, "pageable:0", "pinned:0", Mover::host_threads, 20 * us, 60 * GB);
  link(machine, "pinned:0", "pageable:0", Mover::host_threads, 20 * us, 60 * GB);
  for (u32 g = 0; g < 8; ++g) {
    auto const gpu = "cuda:" + std::to_string(g);
    link(machine, "pinned:0", gpu, Mover::copy_engine, 8 * us, 55 * GB);
    link(machine, gpu, "pinned:0", Mover::copy_engine, 8 * us, 55 * GB);
    link(machine, "pageable:0", gpu, Mover::through_host, 12 * us, 9.6 * GB);
    link(machine, gpu, "pageable:0", Mover::through_host, 12 * us, 18 * GB);
    for (u32 p = 0; p < 8; ++p)
      if (p != g)
        link(machine, gpu, "cuda:" + std::to_string(p), Mover::copy_engine, 9 * us, 396 * GB);
  }
  return machine;
}

std::vector<std::string> places_of(Machine const& machine, Chain const& chain) {
  std::vector<std::string> names{machine.places[machine.links[chain.links[0]].from].place.name()};
  for (u32 const l : chain.links) names.push_back(machine.places[machine.links[l].to].place.name());
  return names;
}

u64 total(Route const& route) {
  u64 sum = 0;
  for (auto const& chain : route.chains) sum += chain.share;
  return sum;
}

TEST(PlanRoute, takes_several_gpus_links_for_a_gibibyte_from_pinned_memory) {
  auto const machine = h200();
  auto const route = plan_route(machine, {"pinned", 0}, {"cuda", 0}, Bytes{GiB});
  EXPECT_EQ(route.chains.size(), 8u);
  EXPECT_EQ(places_of(machine, route.chains[0]), (std::vector<std::string>{"pinned:0", "cuda:0"}));
  for (u64 i = 1; i < route.chains.size(); ++i) EXPECT_EQ(route.chains[i].links.size(), 2u);
  EXPECT_EQ(total(route), GiB);
  double const rate = GiB / route.predicted;
  EXPECT_GT(rate, 150 * GB);
  EXPECT_LE(rate, 175 * GB) << "what the source can send in all";
}

TEST(PlanRoute, takes_both_gpus_links_where_there_are_two) {
  auto machine = h200();
  std::erase_if(machine.links, [](Link const& one) { return one.from > 3 || one.to > 3; });
  machine.places.resize(4);
  for (auto const& [from, to] : {std::pair{"pinned:0", "cuda:0"}, {"cuda:1", "pinned:0"}}) {
    auto const route = plan_route(machine, parse_place(from), parse_place(to), Bytes{GiB});
    EXPECT_EQ(route.chains.size(), 2u);
    EXPECT_GT(GiB / route.predicted, 100 * GB);
    EXPECT_EQ(total(route), GiB);
  }
}

TEST(PlanRoute, stages_pageable_memory) {
  auto const machine = h200();
  auto const in = plan_route(machine, {"pageable", 0}, {"cuda", 0}, Bytes{GiB});
  EXPECT_EQ(places_of(machine, in.chains[0]),
            (std::vector<std::string>{"pageable:0", "pinned:0", "cuda:0"}));
  EXPECT_GT(GiB / in.predicted, 3 * 9.6 * GB);
  auto const out = plan_route(machine, {"cuda", 3}, {"pageable", 0}, Bytes{GiB});
  EXPECT_EQ(places_of(machine, out.chains[0]),
            (std::vector<std::string>{"cuda:3", "pinned:0", "pageable:0"}));
}

TEST(PlanRoute, goes_straight_with_little) {
  auto const machine = h200();
  for (auto const* const from : {"pinned:0", "pageable:0", "cuda:5"})
    for (u64 const size : {u64{0}, u64{1}, u64{65536}}) {
      auto const route = plan_route(machine, parse_place(from), {"cuda", 0}, Bytes{size});
      ASSERT_EQ(route.chains.size(), 1u);
      EXPECT_EQ(route.chains[0].links.size(), 1u) << from << " " << size;
      EXPECT_EQ(total(route), size);
    }
}

TEST(PlanRoute, goes_through_pinned_host_memory_when_gpus_are_not_peers) {
  auto machine = h200();
  for (auto& one : machine.links)
    if (one.from >= 2 && one.to >= 2) one.mover = Mover::through_host, one.rate = 20 * GB;
  auto const route = plan_route(machine, {"cuda", 0}, {"cuda", 1}, Bytes{GiB});
  EXPECT_EQ(places_of(machine, route.chains[0]),
            (std::vector<std::string>{"cuda:0", "pinned:0", "cuda:1"}));
}

TEST(PlanRoute, says_which_places_and_links_are_missing) {
  auto machine = h200();
  EXPECT_TRUE(says(error_of([&] { plan_route(machine, {"cuda", 9}, {"cuda", 0}, Bytes{1}); }),
                   Kind::bad_argument, {"cuda:9", "cuda:7"}));
  std::erase_if(machine.links, [](Link const& one) { return one.to == 2; });
  EXPECT_TRUE(says(error_of([&] { plan_route(machine, {"cuda", 1}, {"cuda", 0}, Bytes{1}); }),
                   Kind::no_route, {"from cuda:1 to cuda:0", "meshpost-topo"}));
}

TEST(Explain, shows_the_chosen_route_first_and_why_not_the_others) {
  auto const machine = h200();
  auto const all = candidates(machine, {"pinned", 0}, {"cuda", 0}, Bytes{GiB});
  ASSERT_GT(all.size(), 8u);
  EXPECT_EQ(all[0].verdict, "chosen");
  for (u64 i = 1; i < all.size(); ++i) EXPECT_NE(all[i].verdict, "chosen");
  auto const text = explain(machine, {"pinned", 0}, {"cuda", 0}, Bytes{GiB});
  for (auto const* const piece : {"chosen", "times as long", "pinned:0 > cuda:0\n", "GB/s"})
    EXPECT_NE(text.find(piece), std::string::npos) << piece << " is not in\n" << text;
}

Machine random_machine(std::mt19937_64& random) {
  Machine machine;
  u64 const places = 2 + random() % 5;
  for (u32 i = 0; i < places; ++i) {
    PlaceInfo info;
    info.place = {random() % 3 == 0 ? (random() % 2 ? "pinned" : "pageable") : "cuda", i};
    machine.places.push_back(info);
  }
  std::uniform_real_distribution<double> latency(1 * us, 50 * us), rate(1 * GB, 400 * GB);
  for (u32 from = 0; from < places; ++from)
    for (u32 to = 0; to < places; ++to)
      for (u64 twice = 0; twice < 2; ++twice)
        if (random() % 3 == 0)
          machine.links.push_back(
              {from, to, static_cast<Mover>(random() % 3), "", latency(random), rate(random), 0});
  return machine;
}

// The time of the fastest simple chain, in chunks of every size that the planner may choose.
double shortest_of_all(Machine const& machine, u32 from, u32 to, u64 size) {
  double best = 1e300;
  std::vector<u32> links;
  std::vector<char> seen(machine.places.size(), 0);
  auto const walk = [&](auto&& self, u32 at) -> void {
    for (u32 l = 0; l < machine.links.size(); ++l) {
      auto const& one = machine.links[l];
      if (one.from != at || (seen[one.to] && one.to != to)) continue;
      links.push_back(l);
      if (one.to == to) {
        if (links.size() == 1)
          best = std::min(best, copying::chain_cost(machine, links, size).fill);
        else
          for (u64 chunk = 256 << 10; chunk <= 8 * MiB; chunk *= 2) {
            u64 const piece = std::min(chunk, size);
            double sum = 0, longest = 0;
            bool const threads = std::ranges::any_of(
                links, [&](u32 k) { return machine.links[k].mover == Mover::host_threads; });
            if (threads) sum += copying::waking_seconds;
            for (u32 const k : links) {
              double const time = machine.links[k].latency + double(piece) / machine.links[k].rate;
              sum += time, longest = std::max(longest, time);
            }
            best = std::min(best, sum + (double(size) / double(piece) - 1) * longest);
          }
      } else if (from != to && machine.places[one.to].place.kind != "pageable") {
        seen[one.to] = 1;
        self(self, one.to);
        seen[one.to] = 0;
      }
      links.pop_back();
    }
  };
  seen[from] = 1;
  walk(walk, from);
  return best;
}

TEST(PlanRoute, finds_the_shortest_of_all_chains_in_random_machines) {
  std::mt19937_64 random(test::new_seed());
  u32 with_route = 0, with_several = 0;
  for (int i = 0; i < 20000; ++i) {
    auto const machine = random_machine(random);
    u32 const from = static_cast<u32>(random() % machine.places.size());
    u32 const to = static_cast<u32>(random() % machine.places.size());
    u64 const size = 1 + random() % (u64{1} << (4 + random() % 28));
    double const wanted = shortest_of_all(machine, from, to, size);
    auto const found = copying::cheapest_chain(machine, from, to, size, {});
    ASSERT_EQ(found.has_value(), wanted < 1e300);
    if (!found) continue;
    ++with_route;
    ASSERT_NEAR(found->cost.seconds(size, found->chunk) / wanted, 1, 1e-9)
        << "machine " << i << ", " << size << " bytes";
    auto const route =
        plan_route(machine, machine.places[from].place, machine.places[to].place, Bytes{size});
    ASSERT_LE(route.predicted, wanted * 1.0201);
    ASSERT_EQ(total(route), size);
    with_several += route.chains.size() > 1;
    std::set<u32> between;
    for (auto const& chain : route.chains) {
      u32 at = from;
      for (u32 const l : chain.links) {
        ASSERT_EQ(machine.links[l].from, at);
        at = machine.links[l].to;
        if (l != chain.links.back()) {
          ASSERT_TRUE(at != from && at != to && between.insert(at).second) << "chains meet";
        }
      }
      ASSERT_EQ(at, to);
    }
  }
  EXPECT_GT(with_route, 1000u);
  EXPECT_GT(with_several, 100u);
}

}  // namespace
}  // namespace meshpost
