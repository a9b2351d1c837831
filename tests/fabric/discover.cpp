// Discovery and measurement of this host.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fabric/topology.hpp"
#include "meshpost/fabric/allocate.hpp"
#include "meshpost/fabric/machine.hpp"
#include "support/errors.hpp"
#include "support/worlds.hpp"

namespace meshpost {
namespace {

using test::error_of;
using test::says;

auto opened() { return open_devices(test::devices(test::Spread::several_devices)); }

TEST(Discover, finds_host_memory_of_each_node_and_every_device) {
  auto const devices = opened();
  auto const machine = discover(devices);
  auto const& nodes = fabric::numa_nodes();
  ASSERT_FALSE(nodes.empty());
  EXPECT_EQ(machine.places.size(), 2 * nodes.size() + devices.size());
  for (auto const& node : nodes)
    for (auto const* const kind : {"pageable", "pinned"}) {
      auto const at = machine.find({kind, node.number});
      ASSERT_TRUE(at);
      EXPECT_GT(machine.places[*at].size, u64{1} << 20);
      EXPECT_EQ(machine.places[*at].numa_node, node.number);
    }
  for (auto const& device : devices) {
    auto const at = machine.find({std::string(device->kind()), device->index()});
    ASSERT_TRUE(at);
    EXPECT_EQ(machine.places[*at].model, device->info().model);
    EXPECT_EQ(machine.places[*at].bus, device->info().bus);
  }
  EXPECT_FALSE(machine.find({"tape", 0}));
}

TEST(Discover, joins_any_two_places_of_host_and_devices) {
  auto const machine = discover(opened());
  for (u32 from = 0; from < machine.places.size(); ++from)
    for (u32 to = 0; to < machine.places.size(); ++to) {
      auto const* const link = machine.link(from, to);
      ASSERT_TRUE(link);
      EXPECT_NE(link->medium, "");
      bool const cpus = machine.places[from].bus.empty() && machine.places[to].bus.empty();
      EXPECT_EQ(link->mover == Mover::host_threads, cpus);
    }
  EXPECT_EQ(machine.link(0, static_cast<u32>(machine.places.size())), nullptr);
}

TEST(Discover, gives_the_same_twice_and_another_fingerprint_for_other_devices) {
  auto const devices = opened();
  EXPECT_EQ(discover(devices), discover(devices));
  auto fewer = devices;
  fewer.pop_back();
  EXPECT_EQ(fingerprint(devices), discover(devices).fingerprint);
  EXPECT_NE(fingerprint(devices), fingerprint(fewer));
}

TEST(Discover, finds_the_physical_device_of_logical_ones_once) {
  auto const whole = open_devices("cpu:2"), split = open_devices("cpu:2*3");
  auto const machine = discover(split);
  EXPECT_EQ(machine, discover(whole));
  EXPECT_EQ(fingerprint(split), fingerprint(whole));
  for (auto const* const name : {"cpu:0", "cpu:1"})
    EXPECT_EQ(allocate_at(parse_place(name), split, Bytes{64}).size(), 64u);
  auto measured = machine;
  calibrate(measured, split, {.large = Bytes{1 << 20}, .repetitions = 1});
  for (auto const& link : measured.links) EXPECT_GT(link.rate, 0);
  auto mixed = split;
  mixed.push_back(whole[1]);
  EXPECT_TRUE(
      says(error_of([&] { discover(mixed); }), Kind::bad_argument, {"cpu:1 is named twice"}));
}

TEST(Discover, refuses_a_device_named_twice) {
  auto devices = opened();
  devices.push_back(devices.front());
  EXPECT_TRUE(says(error_of([&] { discover(devices); }), Kind::bad_argument, {"named twice"}));
}

TEST(Machine, link_is_the_fastest_of_several) {
  Machine machine;
  machine.places.resize(2);
  for (double const rate : {3.0, 5.0, 4.0}) {
    Link link;
    link.to = 1;
    link.rate = rate;
    machine.links.push_back(link);
  }
  EXPECT_EQ(machine.link(0, 1), &machine.links[1]);
  EXPECT_EQ(machine.link(1, 0), nullptr);
}

CalibrationOptions quick() {
  CalibrationOptions options;
  options.large = Bytes{u64{4} << 20};
  return options;
}

TEST(Calibrate, gives_every_link_and_place_rates_that_can_be) {
  auto const devices = opened();
  auto machine = discover(devices);
  calibrate(machine, devices, quick());
  auto const can_be = [](double rate) { return std::isfinite(rate) && rate > 1e6 && rate < 1e14; };
  for (auto const& link : machine.links) {
    EXPECT_TRUE(can_be(link.rate)) << link.rate;
    EXPECT_TRUE(can_be(link.rate_both_ways)) << link.rate_both_ways;
    EXPECT_GT(link.latency, 0);
    EXPECT_LT(link.latency, 1);
    auto const* const back = machine.link(link.to, link.from);
    ASSERT_TRUE(back);
    EXPECT_LT(link.rate, 1000 * back->rate);  // a wrong unit, or another link's
  }
  for (auto const& info : machine.places) {
    EXPECT_TRUE(can_be(info.rate_out)) << info.place.name() << ' ' << info.rate_out;
    EXPECT_TRUE(can_be(info.rate_in)) << info.place.name() << ' ' << info.rate_in;
  }
}

TEST(Calibrate, leaves_all_but_the_measures_as_it_was) {
  auto const devices = opened();
  auto const before = discover(devices);
  auto after = before;
  calibrate(after, devices, quick());
  EXPECT_NE(before, after);
  for (auto& link : after.links) link.latency = link.rate = link.rate_both_ways = 0;
  for (auto& info : after.places) info.rate_out = info.rate_in = 0;
  after.host_copies.clear();
  EXPECT_EQ(before, after);
}

TEST(Calibrate, refuses_another_machine_and_sizes_that_say_nothing) {
  auto const devices = opened();
  auto machine = discover(devices);
  auto other = machine;
  other.fingerprint += " elsewhere";
  EXPECT_TRUE(says(error_of([&] { calibrate(other, devices); }), Kind::bad_environment,
                   {"elsewhere", "calibrate what discover() found here"}));
  for (auto const& [large, repetitions] :
       {std::pair{u64{0}, 3u}, {~u64{0}, 3u}, {u64{1} << 22, 0u}}) {
    CalibrationOptions options;
    options.large = Bytes{large};
    options.repetitions = repetitions;
    EXPECT_TRUE(says(error_of([&] { calibrate(machine, devices, options); }), Kind::bad_argument,
                     {std::to_string(large), std::to_string(repetitions) + " repetitions"}));
  }
  auto foreign = machine;
  foreign.places.back().place = {"tape", 0};
  EXPECT_TRUE(says(error_of([&] { calibrate(foreign, devices); }), Kind::bad_argument,
                   {"tape:0 is not among the devices given"}));
}

}  // namespace
}  // namespace meshpost
