#include "world/peers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"
#include "world/sharing.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

// What a process brings to the layout.
struct Own {
  std::string kind;  // empty: it has no devices
  std::vector<std::string> names;
  u32 ranks = 0;          // asked for
  u32 default_ranks = 0;  // of its kind
  std::vector<DeviceUse> uses;

  std::string pack() const {
    wire::Packer packer;
    packer.text(kind).value(ranks).value(default_ranks).value(static_cast<u32>(names.size()));
    for (auto const& name : names) packer.text(name);
    packer.value(static_cast<u32>(uses.size()));
    for (auto const& use : uses)
      packer.text(use.name).text(use.uuid).value(static_cast<u8>(use.at_once));
    return packer.take();
  }
  static Own unpack(u32 process, std::string const& bytes) {
    wire::Unpacker unpacker(bytes);
    Own own;
    own.kind = unpacker.text();
    own.ranks = unpacker.value<u32>();
    own.default_ranks = unpacker.value<u32>();
    for (u32 left = unpacker.value<u32>(); left > 0; --left) own.names.push_back(unpacker.text());
    own.uses.resize(unpacker.value<u32>());
    for (auto& use : own.uses) {
      use.process = process;
      use.name = unpacker.text();
      use.uuid = unpacker.text();
      use.at_once = unpacker.value<u8>() != 0;
    }
    return own;
  }
};

// Without a wish, the processes of a host share its GPUs, or have a CPU device each.
std::string default_devices(u32 process) {
  u32 gpus = 0;
  try {
    gpus = backend("cuda").count();
  } catch (Error const&) {
    gpus = 0;  // built without
  }
  return gpus == 0 ? "cpu:1" : fmt::format("cuda:{}", process % gpus);
}

}  // namespace

Peers::Peers(std::shared_ptr<Processes> processes, u32 channel)
    : processes_(std::move(processes)), channel_(channel) {
  if (alone()) return;
  node_ = std::make_unique<Node>(*processes_, channel_);
}

std::vector<std::string> Peers::exchange(std::string const& operation, std::string mine) const {
  if (alone()) return {std::move(mine)};
  return processes_->exchange(channel_, operation, std::move(mine));
}

void Peers::agree(std::string const& operation, std::optional<Error> const& mine) const {
  auto const all = exchange(operation, mine ? wire::pack(*mine) : std::string());
  if (mine && alone()) throw Error(*mine);
  for (u32 process = 0; process < all.size(); ++process) {
    if (all[process].empty()) continue;
    if (process == number()) throw Error(*mine);
    throw of_process(process, wire::unpack_error(all[process]));
  }
}

Error Peers::of_process(u32 process, Error const& error) const {
  if (process == number()) return error;
  return {error.kind(), error.operation(),
          fmt::format("in {}: {}", processes_->name(process), error.cause()), error.remedy()};
}

void Peers::extend(AddressSpace& space, Layout const& layout, Bytes offset, Bytes size) const {
  if (alone()) return space.extend(offset, size);
  std::vector<Descriptor> mine;
  together("grow the symmetric heap", [&] {
    space.extend(offset, size);
    for (u32 own = 0; own < layout.devices.size(); ++own)
      mine.emplace_back(space.share(layout.first_device + own, offset, size));
  });
  std::optional<Error> failed;
  node_->share(mine, [&](u32 process, u32 index, int file) {
    auto const first = std::ranges::find(layout.processes, process) - layout.processes.begin();
    if (failed) return;
    try {
      space.adopt(static_cast<u32>(first) + index, offset, size, file);
    } catch (Error const& error) {
      failed = error;
    }
  });
  agree("map the symmetric heap", failed);
}

namespace {

// Devices of two kinds can't map each other's memory. Processes without devices can map any, so
// where there is one kind they are of its node. Returns whether there are several.
bool keep_devices_of_one_kind(Peers const& peers, std::vector<Own> const& parts) {
  std::vector<std::string> kinds;
  kinds.reserve(parts.size());
  for (auto const& part : parts) kinds.push_back(part.kind);
  auto const some = std::ranges::find_if(kinds, [](auto const& kind) { return !kind.empty(); });
  bool const one =
      std::ranges::all_of(kinds, [&](auto const& kind) { return kind.empty() || kind == *some; });
  if (!one) peers.node().keep_kind(kinds);
  return !one;
}

}  // namespace

Layout make_layout(std::string const& spec, u32 ranks, Peers const& peers) {
  if (peers.alone()) return make_layout(spec, ranks);
  Own own;
  Layout layout;
  peers.together("open devices", [&] {
    if (spec == "none") return;
    layout = make_layout(spec.empty() ? default_devices(peers.number()) : spec, ranks);
    own.kind = layout.kind;
    own.names = layout.names;
    own.default_ranks = layout.devices.front()->info().default_ranks;
    for (auto const& device : physical_devices(layout.devices))
      own.uses.push_back({peers.number(), device->name(), device->info().uuid,
                          backend(layout.kind).runs_processes_at_once(*device)});
  });
  own.ranks = ranks;
  auto const all = peers.exchange("open devices", own.pack());
  layout.names.clear();
  layout.processes.clear();
  u32 asked = 0, usual = ~0u;
  std::vector<Own> parts;
  std::vector<DeviceUse> uses;
  for (u32 process = 0; process < all.size(); ++process) {
    parts.push_back(Own::unpack(process, all[process]));
    uses.insert(uses.end(), parts.back().uses.begin(), parts.back().uses.end());
  }
  std::string first;  // process that has devices
  auto const refuse = [](std::string cause, char const* remedy) {
    throw Error(Kind::bad_argument, "World", std::move(cause), remedy);
  };
  for (u32 process = 0; process < parts.size(); ++process) {
    auto const& part = parts[process];
    if (process == peers.number()) layout.first_device = layout.device_count();
    if (part.kind.empty()) continue;
    if (first.empty()) asked = part.ranks, first = std::to_string(process);
    if (layout.kind.empty() || process == peers.number()) layout.kind = part.kind;
    if (part.ranks != asked)
      refuse(fmt::format("process {} asks for {} ranks a device, process {} for {}", first, asked,
                         process, part.ranks),
             "give all processes the same MESHPOST_RANKS, or WorldOptions::ranks");
    usual = std::min(usual, std::max(1u, part.default_ranks / sharers(uses, process)));
    for (auto const& name : part.names) {
      layout.names.push_back(fmt::format("process {}'s {}", process, name));
      layout.processes.push_back(process);
    }
  }
  if (first.empty())
    refuse("no process has devices", "give at least one of them devices (MESHPOST_DEVICES)");
  layout.ranks_per_device = asked;
  bool const mixed = keep_devices_of_one_kind(peers, parts);
  if (mixed && asked == 0) layout.ranks_per_device = usual;  // as many for either kind
  layout.sharers = sharers(uses, peers.number());
  choose_ranks(layout, usual);
  if (peers.number() == 0)
    for (auto const& warning : turns_taken(uses)) event_sink()->warning(warning);
  return layout;
}

}  // namespace meshpost
