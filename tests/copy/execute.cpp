// Routes are taken as planned: chains of engines and host threads through buffers. CPU devices
// stand for all places.
#include "copy/execute.hpp"

#include <algorithm>
#include <thread>

#include "copy/measured.hpp"
#include "copy/places.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::random_data;
using test::says;

// Three CPU devices and two kinds of host memory; engines between devices and to and from the host.
Machine machine() {
  Machine all;
  for (auto const* const name : {"pageable:0", "pinned:0", "cpu:0", "cpu:1", "cpu:2"}) {
    PlaceInfo info;
    info.place = parse_place(name);
    all.places.push_back(info);
  }
  for (u32 from = 0; from < 5; ++from)
    for (u32 to = 0; to < 5; ++to)
      if (from != to)
        all.links.push_back({from, to,
                             from < 2 && to < 2 ? Mover::host_threads : Mover::copy_engine, "",
                             1e-6, 1e9, 1e9});
  return all;
}

u32 link_of(Machine const& all, u32 from, u32 to) {
  auto const at = std::ranges::find_if(
      all.links, [&](Link const& one) { return one.from == from && one.to == to; });
  return static_cast<u32>(at - all.links.begin());
}

// A route of chains through random places, with small chunks.
std::shared_ptr<copying::Plan const> random_plan(Machine const& all, std::mt19937_64& random) {
  u32 const from = static_cast<u32>(random() % 5),
            to = static_cast<u32>((from + 1 + random() % 4) % 5);
  std::vector<u32> others;
  for (u32 p = 0; p < 5; ++p)
    if (p != from && p != to) others.push_back(p);
  std::ranges::shuffle(others, random);
  Route route;
  u64 const chains = 1 + random() % 3;
  for (u64 c = 0; c < chains; ++c) {
    Chain chain;
    u32 at = from;
    u64 const stops = std::min<u64>(random() % 3, others.size());
    for (u64 i = 0; i < stops; ++i) {
      chain.links.push_back(link_of(all, at, others.back()));
      at = others.back();
      others.pop_back();
    }
    chain.links.push_back(link_of(all, at, to));
    chain.chunk = Bytes{1 + random() % 100'000};
    route.chains.push_back(chain);
  }
  return std::make_shared<copying::Plan const>(
      copying::Plan{&all, route, copying::describe(all, route)});
}

copying::Request request_of(std::vector<u8>& target, std::vector<u8> const& source) {
  PitchedCopy rows;
  rows.target = target.data(), rows.source = source.data(), rows.width = source.size();
  return {rows, {}, {}};
}

TEST(Execute, takes_random_routes_to_the_last_byte) {
  auto const all = machine();
  test::copy_devices();
  u64 const seed = test::new_seed();
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 40; ++i) {
        auto const plan = random_plan(all, random);
        auto const source = random_data(random, 1 + random() % (u64{1} << (8 + random() % 14)));
        std::vector<u8> target(source.size(), 0xee);
        auto const state = copying::execute(plan, request_of(target, source));
        state->wait();
        EXPECT_TRUE(state->done());
        EXPECT_TRUE(target == source) << plan->name << ", " << source.size() << " bytes";
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(Execute, remembers_how_fast_a_route_was_and_explain_tells) {
  auto const all = machine();  // and a size that no other test has measured
  test::copy_devices();
  auto const route = plan_route(all, {"cpu", 0}, {"cpu", 1}, Bytes{9'000'000});
  auto const plan = std::make_shared<copying::Plan const>(
      copying::Plan{&all, route, copying::describe(all, route)});
  EXPECT_NE(explain(all, {"cpu", 0}, {"cpu", 1}, Bytes{9'000'000}).find(" -  chosen"),
            std::string::npos);
  std::vector<u8> const source(9'000'000, 5);
  std::vector<u8> target(9'000'000);
  copying::execute(plan, request_of(target, source))->wait();
  ASSERT_TRUE(copying::remembered(plan->name, 9'000'000).has_value());
  EXPECT_EQ(explain(all, {"cpu", 0}, {"cpu", 1}, Bytes{9'000'000}).find(" -  chosen"),
            std::string::npos);
}

TEST(Execute, reports_what_a_chain_meets_with_and_lets_go_of_everything) {
  auto all = machine();
  test::copy_devices();
  std::mt19937_64 random(test::new_seed());
  std::vector<u8> const source(500'000, 5);
  std::vector<u8> target(source.size());
  all.links[link_of(all, 0, 1)].mover = Mover::copy_engine;  // of no device
  Route route{{{{link_of(all, 2, 3)}, {}, Bytes{1000}}, {{link_of(all, 0, 1)}, {}, Bytes{1000}}},
              0};
  auto const state =
      copying::execute(std::make_shared<copying::Plan const>(copying::Plan{&all, route, "bad"}),
                       request_of(target, source));
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(says(error_of([&] { state->wait(); }), Kind::bad_argument, {"two host memories"}));
  EXPECT_TRUE(state->done());
}

}  // namespace
}  // namespace meshpost
