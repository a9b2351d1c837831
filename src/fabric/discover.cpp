#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "base/cores.hpp"
#include "fabric/fingerprint.hpp"
#include "fabric/topology.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost {
namespace {

using Devices = std::vector<std::shared_ptr<Device>>;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

void add_places(Machine& machine, Devices const& devices) {
  auto const model = host_backend().open(0)->info().model;
  for (auto const* const kind : {"pageable", "pinned"})
    for (auto const& node : fabric::numa_nodes()) {
      PlaceInfo info;
      info.place = {kind, node.number};
      info.model = model;
      info.numa_node = node.number;
      info.size = node.size;
      machine.places.push_back(std::move(info));
    }
  u32 const first_node = fabric::numa_nodes().front().number;
  for (auto const& device : devices) {
    PlaceInfo info;
    info.place = {std::string(device->kind()), device->index()};
    if (machine.find(info.place)) {
      if (device->whole()) continue;  // logical devices of one physical one: its place
      throw Error(Kind::bad_argument, "discover", device->name() + " is named twice",
                  "name each device once");
    }
    info.model = device->info().model;
    info.bus = device->info().bus;
    info.numa_node = fabric::node_of_bus(info.bus).value_or(first_node);
    info.size = device->info().memory;
    machine.places.push_back(std::move(info));
  }
}

// Opens the devices' memory to each other if the hardware allows it.
bool are_peers(std::shared_ptr<Device> const& one, std::shared_ptr<Device> const& other) {
  if (one == other) return true;
  if (one->kind() != other->kind()) return false;
  try {
    backend(one->kind()).connect({one, other});
    return true;
  } catch (Error const&) {
    return false;
  }
}

std::shared_ptr<Device> device_at(Devices const& devices, Place const& place) {
  for (auto const& device : devices)
    if (device->kind() == place.kind && device->index() == place.number) return physical(device);
  return nullptr;
}

void describe(Link& link, PlaceInfo const& from, PlaceInfo const& to, Devices const& devices) {
  bool const host_from = in_host_memory(from.place), host_to = in_host_memory(to.place);
  link.medium = "memory";
  if (host_from && host_to) {
    link.mover = Mover::host_threads;
    return;
  }
  if (link.from == link.to) return;
  if (host_from || host_to) {
    auto const& host = host_from ? from : to;
    link.medium = fabric::pcie_name(host_from ? to.bus : from.bus);
    if (host.place.kind != "pinned") link.mover = Mover::through_host;
    return;
  }
  auto const nvlink = fabric::nvlink_name(from.bus, to.bus);
  link.medium = nvlink.empty() ? fabric::pcie_name(from.bus) : nvlink;
  if (are_peers(device_at(devices, from.place), device_at(devices, to.place))) return;
  link.mover = Mover::through_host;
  link.medium = fabric::pcie_name(from.bus);
}

}  // namespace

namespace fabric {

std::string host_part() {
  auto const driver = driver_version();
  auto text = fmt::format("{}, {} cores of {}", host_name(), usable_cores(),
                          host_backend().open(0)->info().model);
  return driver.empty() ? text : text + ", driver " + driver;
}

std::string device_part(PlaceInfo const& info) {
  return info.place.name() + " " + info.model + (info.bus.empty() ? "" : " at " + info.bus);
}

}  // namespace fabric

std::string fingerprint(Devices const& devices) {
  std::string text = fabric::host_part();
  for (auto const& device : physical_devices(devices)) {
    PlaceInfo info;
    info.place = {std::string(device->kind()), device->index()};
    info.model = device->info().model;
    info.bus = device->info().bus;
    text += "; " + fabric::device_part(info);
  }
  return text;
}

Machine discover(Devices const& devices) {
  Machine machine;
  machine.host = host_name();
  machine.fingerprint = fingerprint(devices);
  add_places(machine, devices);
  auto const count = static_cast<u32>(machine.places.size());
  for (u32 from = 0; from < count; ++from)
    for (u32 to = 0; to < count; ++to) {
      auto const &one = machine.places[from].place, &other = machine.places[to].place;
      // Devices of different kinds don't know each other: bytes go through the host.
      if (!in_host_memory(one) && !in_host_memory(other) && one.kind != other.kind) continue;
      Link link;
      link.from = from;
      link.to = to;
      describe(link, machine.places[from], machine.places[to], devices);
      machine.links.push_back(std::move(link));
    }
  return machine;
}

}  // namespace meshpost
