#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "fabric/machine_cache.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost {
namespace {

using nlohmann::json;

// The keys of all versions.
std::vector<std::string_view> machine_keys() {
  return {"version", "host", "fingerprint", "places", "links"};
}

[[noreturn]] void refuse(std::string const& where, std::string const& cause) {
  throw Error(Kind::bad_argument, "read a machine file: " + where, cause,
              "measure it with meshpost-topo --measure again, or repair the file");
}

std::string member(std::string const& where, std::string const& key) { return where + "." + key; }

// Refuses all values but an object that has exactly these members.
void check_object(json const& value, std::string const& where,
                  std::vector<std::string_view> const& keys) {
  if (!value.is_object()) refuse(where, fmt::format("it is {}, not an object", value.type_name()));
  for (auto const key : keys)
    if (!value.contains(key)) refuse(where, fmt::format("'{}' is missing", key));
  for (auto const& [key, unused] : value.items())
    if (std::ranges::find(keys, key) == keys.end())
      refuse(where, fmt::format("'{}' is not known", key));
}

std::string text(json const& owner, char const* key, std::string const& where) {
  auto const& value = owner.at(key);
  if (!value.is_string())
    refuse(member(where, key), fmt::format("it is {}, not a string", value.type_name()));
  return value.get<std::string>();
}

u64 whole(json const& owner, char const* key, std::string const& where, u64 most) {
  auto const& value = owner.at(key);
  if (!value.is_number_unsigned())
    refuse(member(where, key), fmt::format("{} is not a whole number of 0 or more", value.dump()));
  auto const number = value.get<u64>();
  if (number > most) refuse(member(where, key), fmt::format("{} is more than {}", number, most));
  return number;
}

// Seconds or bytes/s: finite, and 0 if nothing was measured.
double measure(json const& owner, std::string const& key, std::string const& where) {
  auto const& value = owner.at(key);
  if (!value.is_number())
    refuse(member(where, key), fmt::format("it is {}, not a number", value.type_name()));
  auto const number = value.get<double>();
  if (!std::isfinite(number) || number < 0)
    refuse(member(where, key), fmt::format("{} is not a finite number of 0 or more", value.dump()));
  return number;
}

Place place(json const& owner, char const* key, std::string const& where) {
  auto const name = text(owner, key, where);
  try {
    return parse_place(name);
  } catch (Error const& error) {
    refuse(member(where, key), fmt::format("'{}' is not a place: {}", name, error.cause()));
  }
}

Mover mover(json const& owner, std::string const& where) {
  auto const name = text(owner, "mover", where);
  for (auto const one : {Mover::host_threads, Mover::copy_engine, Mover::through_host})
    if (to_string(one) == name) return one;
  refuse(member(where, "mover"),
         fmt::format("'{}' is none of host_threads, copy_engine and through_host", name));
}

json const& list(json const& owner, char const* key) {
  auto const& value = owner.at(key);
  if (!value.is_array()) refuse(key, fmt::format("it is {}, not a list", value.type_name()));
  return value;
}

PlaceInfo read_place(json const& value, std::string const& where) {
  check_object(value, where,
               {"place", "model", "numa_node", "bus", "bytes", "rate_out", "rate_in"});
  PlaceInfo info;
  info.place = place(value, "place", where);
  info.model = text(value, "model", where);
  info.numa_node = static_cast<u32>(whole(value, "numa_node", where, ~u32{0}));
  info.bus = text(value, "bus", where);
  info.size = Bytes{whole(value, "bytes", where, ~u64{0})};
  info.rate_out = measure(value, "rate_out", where);
  info.rate_in = measure(value, "rate_in", where);
  return info;
}

Link read_link(json const& value, std::string const& where, Machine const& machine) {
  check_object(value, where,
               {"from", "to", "mover", "medium", "latency", "rate", "rate_both_ways"});
  auto const position = [&](char const* key) {
    auto const end = place(value, key, where);
    auto const at = machine.find(end);
    if (!at) refuse(member(where, key), fmt::format("{} is not among the places", end.name()));
    return *at;
  };
  Link link;
  link.from = position("from");
  link.to = position("to");
  link.mover = mover(value, where);
  link.medium = text(value, "medium", where);
  link.latency = measure(value, "latency", where);
  link.rate = measure(value, "rate", where);
  link.rate_both_ways = measure(value, "rate_both_ways", where);
  for (auto const& other : machine.links)
    if (other.from == link.from && other.to == link.to && other.mover == link.mover)
      refuse(where, "an earlier link has the same ends and mover");
  return link;
}

std::vector<std::string_view> host_copy_keys() {
  std::vector<std::string_view> keys{"bytes"};
  for (u32 way = 0; way < host_ways; ++way) keys.push_back(to_string(static_cast<HostWay>(way)));
  return keys;
}

HostRates read_host_rates(json const& value, std::string const& where) {
  check_object(value, where, host_copy_keys());
  HostRates one{Bytes{whole(value, "bytes", where, ~u64{0})}, {}};
  for (u32 way = 0; way < host_ways; ++way)
    one.rates[way] = measure(value, std::string(to_string(static_cast<HostWay>(way))), where);
  return one;
}

json host_copies_of(Machine const& machine) {
  json all = json::array();
  for (auto const& one : machine.host_copies) {
    json row = {{"bytes", one.size.value}};
    for (u32 way = 0; way < host_ways; ++way)
      row[std::string(to_string(static_cast<HostWay>(way)))] = one.rates[way];
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace

std::string to_json(Machine const& machine) {
  auto const name = [&](u32 at) { return machine.places.at(at).place.name(); };
  json places = json::array(), links = json::array();
  for (auto const& one : machine.places)
    places.push_back({{"place", one.place.name()},
                      {"model", one.model},
                      {"numa_node", one.numa_node},
                      {"bus", one.bus},
                      {"bytes", one.size.value},
                      {"rate_out", one.rate_out},
                      {"rate_in", one.rate_in}});
  for (auto const& one : machine.links)
    links.push_back({{"from", name(one.from)},
                     {"to", name(one.to)},
                     {"mover", to_string(one.mover)},
                     {"medium", one.medium},
                     {"latency", one.latency},
                     {"rate", one.rate},
                     {"rate_both_ways", one.rate_both_ways}});
  json const all = {{"version", machine.version},         {"host", machine.host},
                    {"fingerprint", machine.fingerprint}, {"places", std::move(places)},
                    {"links", std::move(links)},          {"host_copies", host_copies_of(machine)}};
  // Names that are not UTF-8, such as a strange host name, are changed: a name is not worth an
  // exception.
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Machine machine_from_json(std::string const& source) {
  auto const all = json::parse(source, nullptr, false);
  if (all.is_discarded()) refuse("the file", "it is not JSON");
  // First, because another version may have other members.
  if (!all.is_object() || !all.contains("version"))
    refuse("the file", "it has no 'version', so it is not a machine file");
  Machine machine;
  machine.version = static_cast<u32>(whole(all, "version", "file", ~u32{0}));
  if (machine.version != Machine::current_version)
    refuse("file.version", fmt::format("it is of version {}; this library reads version {}",
                                       machine.version, Machine::current_version));
  auto keys = machine_keys();
  keys.emplace_back("host_copies");
  check_object(all, "file", keys);
  machine.host = text(all, "host", "file");
  machine.fingerprint = text(all, "fingerprint", "file");
  for (auto const& one : list(all, "places")) {
    auto const where = fmt::format("places[{}]", machine.places.size());
    auto info = read_place(one, where);
    if (machine.find(info.place))
      refuse(where, fmt::format("{} is listed twice", info.place.name()));
    machine.places.push_back(std::move(info));
  }
  for (auto const& one : list(all, "links"))
    machine.links.push_back(
        read_link(one, fmt::format("links[{}]", machine.links.size()), machine));
  for (auto const& one : list(all, "host_copies"))
    machine.host_copies.push_back(
        read_host_rates(one, fmt::format("host_copies[{}]", machine.host_copies.size())));
  return machine;
}

bool fabric::is_machine_file(std::string const& text) {
  auto const all = json::parse(text, nullptr, false);
  return all.is_object() && std::ranges::all_of(machine_keys(), [&](std::string_view key) {
           return all.contains(key);
         });
}

}  // namespace meshpost
