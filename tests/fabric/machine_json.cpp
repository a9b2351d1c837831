// Machines as files: a written file can be read, and errors in a file are named.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "machines.hpp"
#include "support/errors.hpp"

namespace meshpost {
namespace {

using nlohmann::json;
using test::error_of;
using test::says;

TEST(MachineJson, gives_back_random_machines_to_the_bit) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    auto const machine = test::random_machine(random);
    EXPECT_EQ(machine_from_json(to_json(machine)), machine);
  }
}

TEST(MachineJson, writes_names_that_are_no_text_rather_than_fail) {
  Machine machine;
  machine.host = "\xff\xfe";
  EXPECT_NE(machine_from_json(to_json(machine)).host, "");
}

json sample() {
  Machine machine;
  machine.host = "here";
  machine.fingerprint = "this one";
  PlaceInfo info;
  info.place = {"pinned", 0};
  machine.places.push_back(info);
  info.place = {"cuda", 1};
  machine.places.push_back(info);
  Link link;
  link.from = 0;
  link.to = 1;
  machine.links.push_back(link);
  machine.host_copies.push_back({Bytes{1 << 20}, {1, 2, 3, 4, 5}});
  return json::parse(to_json(machine));
}

struct Wrong {
  std::function<void(json&)> change;
  std::string where, what;
};

TEST(MachineJson, that_is_malformed_is_refused_with_the_place_and_the_cause) {
  auto const set = [](char const* pointer, json value) {
    return [=](json& all) { all[json::json_pointer(pointer)] = value; };
  };
  auto const drop = [](char const* owner, char const* key) {
    return [=](json& all) { all[json::json_pointer(owner)].erase(key); };
  };
  std::vector<Wrong> wrong = {
      {set("/version", 1), "file.version", "of version 1; this library reads version 2"},
      {set("/version", -1), "file.version", "-1 is not a whole number"},
      {set("/version", 1.0), "file.version", "1.0 is not a whole number"},
      {set("/version", "1"), "file.version", "is not a whole number"},
      {drop("", "version"), "the file", "it has no 'version'"},
      {set("/host", 1), "file.host", "number, not a string"},
      {set("/fingerprint", nullptr), "file.fingerprint", "null, not a string"},
      {set("/places", json::object()), "places", "object, not a list"},
      {set("/links", "none"), "links", "string, not a list"},
      {set("/surplus", 1), "file", "'surplus' is not known"},
      {set("/places/0", 3), "places[0]", "number, not an object"},
      {set("/places/1/place", "pinned:0"), "places[1]", "pinned:0 is listed twice"},
      {set("/places/1/place", "cuda"), "places[1].place", "'cuda' is not a place"},
      {set("/places/0/numa_node", -3), "places[0].numa_node", "-3 is not a whole number"},
      {set("/places/0/numa_node", u64{1} << 32), "places[0].numa_node", "is more than 4294967295"},
      {set("/places/0/bytes", 1.5), "places[0].bytes", "1.5 is not a whole number"},
      {set("/places/0/rate_out", "fast"), "places[0].rate_out", "string, not a number"},
      {set("/places/0/rate_in", -1), "places[0].rate_in", "-1 is not a finite number"},
      {set("/places/0/speed", 1), "places[0]", "'speed' is not known"},
      {set("/links/0", json::array()), "links[0]", "array, not an object"},
      {set("/links/0/from", "cuda:2"), "links[0].from", "cuda:2 is not among the places"},
      {set("/links/0/to", 1), "links[0].to", "number, not a string"},
      {set("/links/0/mover", "pigeon"), "links[0].mover", "'pigeon' is none of"},
      {set("/links/0/rate", nullptr), "links[0].rate", "null, not a number"},
      {set("/links/0/latency", -1e-9), "links[0].latency", "is not a finite number"},
      {set("/host_copies", 1), "host_copies", "number, not a list"},
      {set("/host_copies/0", 1), "host_copies[0]", "number, not an object"},
      {set("/host_copies/0/bytes", -1), "host_copies[0].bytes", "-1 is not a whole number"},
      {set("/host_copies/0/stream_one", "x"), "host_copies[0].stream_one", "string, not a number"},
      {set("/host_copies/0/memmove", 1), "host_copies[0]", "'memmove' is not known"},
      {[](json& all) { all["links"].push_back(all["links"][0]); }, "links[1]",
       "an earlier link has"},
  };
  for (auto const* const key :
       {"place", "model", "numa_node", "bus", "bytes", "rate_out", "rate_in"})
    wrong.push_back({drop("/places/0", key), "places[0]", std::string("'") + key + "' is missing"});
  for (auto const* const key :
       {"from", "to", "mover", "medium", "latency", "rate", "rate_both_ways"})
    wrong.push_back({drop("/links/0", key), "links[0]", std::string("'") + key + "' is missing"});
  for (auto const* const key :
       {"bytes", "memcpy_one", "memcpy_shares", "memcpy_slices", "stream_one", "stream_slices"})
    wrong.push_back(
        {drop("/host_copies/0", key), "host_copies[0]", std::string("'") + key + "' is missing"});
  for (auto const* const key : {"host", "fingerprint", "places", "links", "host_copies"})
    wrong.push_back({drop("", key), "file", std::string("'") + key + "' is missing"});

  ASSERT_NO_THROW(machine_from_json(sample().dump()));
  for (auto const& [change, where, what] : wrong) {
    auto all = sample();
    change(all);
    EXPECT_TRUE(says(error_of([&] { machine_from_json(all.dump()); }), Kind::bad_argument,
                     {where, what, "measure it with"}));
  }
}

TEST(MachineJson, cut_off_or_spoiled_anywhere_never_passes_for_another_machine) {
  u64 const seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  auto const whole = to_json(test::random_machine(random));
  auto const end = whole.find_last_of('}');
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(error_of([&] { machine_from_json(whole.substr(0, random() % end)); }).kind(),
              Kind::bad_argument);
  for (int i = 0; i < 300; ++i) {  // read or refused, but nothing else happens
    auto spoiled = whole;
    spoiled[random() % end] = static_cast<char>(random());
    try {
      machine_from_json(spoiled);
    } catch (Error const& error) {
      EXPECT_EQ(error.kind(), Kind::bad_argument);
    }
  }
}

TEST(MachineJson, of_huge_numbers_and_deep_nesting_is_refused) {
  auto const text = sample().dump();
  auto const at = text.find("\"rate\":0.0");
  ASSERT_NE(at, std::string::npos);
  auto huge = text;
  huge.replace(at, 10, "\"rate\":1e999");
  EXPECT_EQ(error_of([&] { machine_from_json(huge); }).kind(), Kind::bad_argument);
  EXPECT_EQ(error_of([&] { machine_from_json(std::string(2000, '[')); }).kind(),
            Kind::bad_argument);
}

}  // namespace
}  // namespace meshpost
