// Prints the memories of this machine and the links between them, measured.
#include <meshpost/device/backend.hpp>
#include <meshpost/meshpost.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/files.hpp"
#include "options.hpp"
#include "uplinks.hpp"

namespace {

using namespace meshpost;

using topo::Devices;
using topo::Options;

Machine get_machine(Options const& options, Devices const& devices) {
  if (options.measure == "never") return discover(devices);
  return options.measure == "again" ? measure_machine(devices) : this_machine(devices);
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", bytes < 9.95e9 ? 1 : 0, bytes * 1e-9);
  return bytes > 0 ? text : "-";
}

// Bytes that can be allocated now, and if the memory corrects errors. The machine file has neither:
// they change, and no route depends on them.
struct State {
  std::string ecc = "-", usable = "-";
};
State state_of(PlaceInfo const& info, Devices const& devices) {
  State state;
  for (auto const& device : devices) {
    if (Place{std::string(device->kind()), device->index()} != info.place) continue;
    if (auto const ecc = device->info().ecc) state.ecc = *ecc ? "on" : "off";
    state.usable = std::to_string(device->free_memory().value);
  }
  return state;
}

// That of the nodes of the host is known only for all together.
void print_host_memory() {
  std::printf("host memory: %llu bytes usable on all nodes together\n",
              static_cast<unsigned long long>(host_backend().open(0)->free_memory().value));
}

void print_places(Machine const& machine, Devices const& devices) {
  int width = 5;
  for (auto const& info : machine.places)
    width = std::max(width, static_cast<int>(info.place.name().size()));
  std::printf("\n%-*s  node %10s %14s  ECC  %8s %8s  %s\n", width, "place", "memory GB",
              "usable bytes", "out GB/s", "in GB/s", "model");
  for (auto const& info : machine.places) {
    auto const state = state_of(info, devices);
    std::printf("%-*s  %4u %10s %14s  %3s  %8s %8s  %s%s\n", width, info.place.name().c_str(),
                info.numa_node, gigabytes(static_cast<double>(info.size)).c_str(),
                state.usable.c_str(), state.ecc.c_str(), gigabytes(info.rate_out).c_str(),
                gigabytes(info.rate_in).c_str(), info.model.c_str(),
                (info.bus.empty() ? "" : " at " + info.bus).c_str());
  }
  print_host_memory();
}

void print_matrix(Machine const& machine, char const* title,
                  std::function<std::string(Link const&)> const& text) {
  int width = 6;
  for (auto const& info : machine.places)
    width = std::max(width, static_cast<int>(info.place.name().size()));
  std::printf("\n%s, from the row's place to the column's\n%*s", title, width, "");
  for (auto const& info : machine.places) std::printf(" %*s", width, info.place.name().c_str());
  std::printf("\n");
  for (u32 from = 0; from < machine.places.size(); ++from) {
    std::printf("%-*s", width, machine.places[from].place.name().c_str());
    for (u32 to = 0; to < machine.places.size(); ++to) {
      auto const* const link = machine.link(from, to);
      std::printf(" %*s", width, link ? text(*link).c_str() : "-");
    }
    std::printf("\n");
  }
}

// Prints each kind of link once, with the range of its rates.
void print_kinds(Machine const& machine) {
  std::set<std::tuple<std::string, Mover>> kinds;
  for (auto const& link : machine.links) kinds.insert({link.medium, link.mover});
  std::printf("\n%-14s  %-12s  links   GB/s\n", "medium", "moved by");
  for (auto const& [medium, mover] : kinds) {
    double least = 0, most = 0;
    int count = 0;
    for (auto const& link : machine.links) {
      if (link.medium != medium || link.mover != mover) continue;
      least = count == 0 ? link.rate : std::min(least, link.rate);
      most = std::max(most, link.rate);
      ++count;
    }
    std::printf("%-14s  %-12s  %5d   %s to %s\n", medium.c_str(),
                std::string(to_string(mover)).c_str(), count, gigabytes(least).c_str(),
                gigabytes(most).c_str());
  }
}

void print(Machine const& machine, Devices const& devices) {
  std::printf("host         %s\nfingerprint  %s\n", machine.host.c_str(),
              machine.fingerprint.c_str());
  print_places(machine, devices);
  print_kinds(machine);
  print_matrix(machine, "GB/s", [](Link const& link) { return gigabytes(link.rate); });
  print_matrix(machine, "GB/s while the opposite link is as busy",
               [](Link const& link) { return gigabytes(link.rate_both_ways); });
  print_matrix(machine, "us of a copy without its bytes", [](Link const& link) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", link.latency * 1e6);
    return std::string(link.latency > 0 ? text : "-");
  });
}

void print_host_copies(Machine const& machine) {
  if (machine.host_copies.empty()) return;
  std::printf("\nGB/s within host memory, MiB a copy\n%-13s", "");
  for (auto const& one : machine.host_copies)
    std::printf(" %6.0f", static_cast<double>(one.size) / (1 << 20));
  std::printf("\n");
  for (u32 way = 0; way < host_ways; ++way) {
    std::printf("%-13s", std::string(to_string(static_cast<HostWay>(way))).c_str());
    for (auto const& one : machine.host_copies)
      std::printf(" %6s", gigabytes(one.rates[way]).c_str());
    std::printf("\n");
  }
}

}  // namespace

int topo::run(Options const& options) {
  auto const devices = open_devices(options.devices);
  auto const machine = get_machine(options, devices);
  print(machine, devices);
  print_host_copies(machine);
  print_uplinks(shared_uplinks(devices), options.measure == "again");
  if (!options.json.empty()) apps::write_text(options.json, to_json(machine));
  return 0;
}
