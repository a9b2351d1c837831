#include "world/process_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"
#include "meshpost/world/spaces.hpp"
#include "world/gpu_sharing.hpp"
#include "world/mapping_trial.hpp"
#include "world/reach.hpp"
#include "world/wire.hpp"

namespace meshpost {
namespace {

// A process's part of the layout.
struct Own {
  struct Part {
    std::string name, kind;
    DeviceTraits traits;  // other processes may not know this kind
    std::string domain;   // devices of a node with equal domains reach each other
  };
  std::vector<Part> devices;
  u32 ranks = 0;          // asked for
  u32 default_ranks = 0;  // the lowest of its devices'
  std::vector<std::string> settings;
  std::vector<DeviceUse> uses;
  std::vector<Offer> offers;  // to map memory, for other processes of the node
  std::vector<SeparatePair> separate;

  std::string pack() const {
    wire::Packer packer;
    packer.value(ranks).value(default_ranks).value(static_cast<u32>(devices.size()));
    for (auto const& device : devices)
      packer.text(device.name)
          .text(device.kind)
          .value(static_cast<u8>(device.traits.in_host_memory))
          .value(static_cast<u8>(device.traits.on_host_cores))
          .value(device.traits.extra_polls)
          .text(device.domain);
    packer.value(static_cast<u32>(uses.size()));
    for (auto const& use : uses)
      packer.text(use.name).text(use.uuid).value(static_cast<u8>(use.at_once));
    packer.value(static_cast<u32>(settings.size()));
    for (auto const& value : settings) packer.text(value);
    packer.value(static_cast<u32>(offers.size()));
    for (auto const& offer : offers) packer.text(offer.device).text(offer.kind);
    packer.value(static_cast<u32>(separate.size()));
    for (auto const& pair : separate) packer.value(pair.other).text(pair.why);
    return packer.take();
  }
  static Own unpack(u32 process, std::string const& bytes) {
    wire::Unpacker unpacker(bytes);
    Own own;
    own.ranks = unpacker.value<u32>();
    own.default_ranks = unpacker.value<u32>();
    own.devices.resize(unpacker.value<u32>());
    for (auto& device : own.devices) {
      device.name = unpacker.text();
      device.kind = unpacker.text();
      device.traits.in_host_memory = unpacker.value<u8>() != 0;
      device.traits.on_host_cores = unpacker.value<u8>() != 0;
      device.traits.extra_polls = unpacker.value<ExtraPolls>();
      device.domain = unpacker.text();
    }
    own.uses.resize(unpacker.value<u32>());
    for (auto& use : own.uses) {
      use.process = process;
      use.name = unpacker.text();
      use.uuid = unpacker.text();
      use.at_once = unpacker.value<u8>() != 0;
    }
    for (u32 left = unpacker.value<u32>(); left > 0; --left)
      own.settings.push_back(unpacker.text());
    own.offers.resize(unpacker.value<u32>());
    for (auto& offer : own.offers) {
      offer.process = process;
      offer.device = unpacker.text();
      offer.kind = unpacker.text();
    }
    own.separate.resize(unpacker.value<u32>());
    for (auto& pair : own.separate) {
      pair.process = process;
      pair.other = unpacker.value<u32>();
      pair.why = unpacker.text();
    }
    return own;
  }
};

// By default the processes of a host share its GPUs, or have a CPU device each.
std::string default_devices(ProcessGroup const& group) {
  auto& kind = default_backend();
  if (&kind == &host_backend()) return fmt::format("{}:1", kind.kind());
  return fmt::format("{}:{}", kind.kind(),
                     default_gpu(group.node().hosts(), group.number(), kind.count()));
}

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<Processes> processes, u32 channel)
    : processes_(std::move(processes)), channel_(channel) {
  if (alone()) return;
  node_ = std::make_unique<Node>(*processes_, channel_);
}

std::vector<std::string> ProcessGroup::exchange(std::string const& operation, std::string mine,
                                                Waiters waiters) const {
  if (alone()) return {std::move(mine)};
  return processes_->exchange(channel_, operation, std::move(mine), waiters);
}

void ProcessGroup::agree(std::string const& operation, std::optional<Error> const& mine) const {
  if (mine && alone()) throw Error(*mine);
  auto const all = exchange(operation, mine ? wire::pack(*mine) : std::string());
  for (u32 process = 0; process < all.size(); ++process) {
    if (all[process].empty()) continue;
    if (process == number()) throw Error(*mine);
    throw of_process(process, wire::unpack_error(all[process]));
  }
}

std::vector<std::string> ProcessGroup::gather(std::string const& operation,
                                              std::function<std::string()> const& work) const {
  std::optional<Error> mine;
  std::string result;
  try {
    result = work();
  } catch (...) {
    mine = caught(operation);
  }
  if (mine && alone()) throw Error(*mine);
  if (alone()) return {result};
  auto all = exchange(
      operation, wire::Packer().text(mine ? wire::pack(*mine) : std::string()).text(result).take());
  for (u32 process = 0; process < all.size(); ++process) {
    wire::Unpacker unpacker(all[process]);
    if (auto const error = unpacker.text(); !error.empty())
      throw process == number() ? Error(*mine) : of_process(process, wire::unpack_error(error));
    all[process] = unpacker.text();
  }
  return all;
}

std::string ProcessGroup::silence() const {
  std::string text;
  if (!alone())
    for (auto const& line : processes_->silent()) text += "\n  " + line;
  return text;
}

Error ProcessGroup::of_process(u32 process, Error const& error) const {
  if (process == number()) return error;
  return {error.kind(), error.operation(),
          fmt::format("in {}: {}", processes_->name(process), error.cause()), error.remedy()};
}

void ProcessGroup::extend(Spaces& spaces, Layout const& layout, Bytes offset, Bytes size) const {
  if (alone()) return spaces.extend(offset, size);
  std::vector<std::vector<u32>> passed(count());  // devices, by process: equal in those of a node
  for (u32 device = 0; device < layout.device_count(); ++device)
    if (layout.is_mapped_elsewhere(device)) passed[layout.processes[device]].push_back(device);
  std::vector<Descriptor> mine;
  together("grow the symmetric heap", [&] {
    spaces.extend(offset, size);
    for (u32 const device : passed[number()])
      mine.emplace_back(spaces.share(device - layout.first_device, offset, size));
  });
  together("map the symmetric heap", [&] {
    node_->share(mine, [&](u32 process, u32 index, int file) {
      spaces.adopt(passed[process].at(index), offset, size, file);
    });
  });
}

namespace {

// Devices of a kind are one domain on each node, named by the kind. The exception: they are several
// domains within this process, or must be kept apart.
void name_domains(Layout const& layout, bool apart, u32 process, std::vector<Own::Part>& devices) {
  for (u32 one = 0; one < devices.size(); ++one) {
    auto& device = devices[one];
    bool whole = !apart;
    for (u32 other = 0; other < devices.size(); ++other)
      whole &= devices[other].kind != device.kind || layout.domains[other] == layout.domains[one];
    device.domain =
        whole ? device.kind : fmt::format("{} {} of {}", device.kind, layout.domains[one], process);
  }
}

bool is_whole(std::vector<Own::Part> const& devices, std::string_view kind) {
  return std::ranges::any_of(
      devices, [&](auto const& device) { return device.kind == kind && device.domain == kind; });
}

// Devices of a kind are one domain on each node. It is divided where processes can't map each
// other's memory.
void divide_domains(std::vector<Own>& parts, std::vector<Refusal> const& refusals) {
  auto const processes = static_cast<u32>(parts.size());
  std::map<std::string, std::vector<u32>> groups;  // by kind
  for (u32 process = 0; process < processes; ++process)
    for (auto& device : parts[process].devices) {
      if (device.domain != device.kind) continue;
      auto& of_kind = groups[device.kind];
      if (of_kind.empty()) of_kind = groups_that_map(refusals, device.kind, processes);
      device.domain += fmt::format(" {}", of_kind[process]);
    }
}

// True if devices of two different processes have different domains.
bool differ(std::vector<Own> const& parts) {
  for (auto const& one : parts)
    for (auto const& other : parts)
      for (auto const& a : one.devices)
        for (auto const& b : other.devices)
          if (&one != &other && a.domain != b.domain) return true;
  return false;
}

void add_devices(Layout& layout, std::vector<Own> const& parts, ProcessGroup const& group) {
  std::map<std::string, u32> numbers;  // of domains
  for (u32 process = 0; process < parts.size(); ++process) {
    if (process == group.number()) layout.first_device = layout.device_count();
    for (auto const& device : parts[process].devices) {
      layout.names.push_back(fmt::format("process {}'s {}", process, device.name));
      layout.traits.push_back(device.traits);
      layout.processes.push_back(process);
      auto const domain = group.far(process) ? "elsewhere " + device.domain : device.domain;
      layout.domains.push_back(
          numbers.try_emplace(domain, static_cast<u32>(numbers.size())).first->second);
    }
  }
  layout.far_processes = group.any_far() || differ(parts);
}

// \throws Error(bad_argument) unless both ask for the same
void agree(std::vector<Own> const& parts, Own const& one, Own const& other, Setting const& setting,
           std::string const& ours, std::string const& theirs) {
  if (ours == theirs) return;
  throw Error(Kind::bad_argument, "World",
              fmt::format("process {} asks for {} {}, process {} for {}", &one - parts.data(), ours,
                          setting.what, &other - parts.data(), theirs),
              fmt::format("give all processes the same {}", setting.remedy));
}

// The number of ranks that was asked for; 0: none was. It must be equal in all processes that have
// devices.
// \throws Error(bad_argument)
u32 ranks_asked_for(std::vector<Own> const& parts) {
  Own const* first = nullptr;
  for (auto const& part : parts) {
    if (part.devices.empty()) continue;
    if (!first) first = &part;
    agree(parts, *first, part, {"ranks a device", "MESHPOST_RANKS, or WorldOptions::ranks", {}},
          std::to_string(first->ranks), std::to_string(part.ranks));
  }
  if (!first)
    throw Error(Kind::bad_argument, "World", "no process has devices",
                "give at least one of them devices (MESHPOST_DEVICES)");
  return first->ranks;
}

}  // namespace

Layout make_layout(std::string const& spec, u32 ranks, bool apart, ProcessGroup const& group,
                   std::vector<Setting> const& settings) {
  if (group.alone()) return make_layout(spec, ranks, apart);
  Own own;
  Layout layout;
  std::vector<std::shared_ptr<Device>> opened;
  group.together("open devices", [&] {
    if (spec == "none") return;
    auto const alone = make_layout(spec.empty() ? default_devices(group) : spec, ranks, apart);
    layout.devices = alone.devices;
    own.default_ranks = ~0u;
    for (auto const& device : alone.devices) {
      own.devices.push_back(
          {device->name(), std::string(device->kind()), traits_of(device->kind()), {}});
      own.default_ranks = std::min(own.default_ranks, device->info().default_ranks);
    }
    name_domains(alone, apart, group.number(), own.devices);
    opened = physical_devices(alone.devices);
    for (auto const& device : opened) {
      own.uses.push_back({group.number(), device->name(), device->info().uuid,
                          backend(device->kind()).runs_processes_at_once(*device)});
      if (!device->in_host_memory() && is_whole(own.devices, device->kind()))
        own.offers.push_back({group.number(), device->name(), std::string(device->kind())});
    }
  });
  own.separate = group.node().separate();
  own.ranks = ranks;
  for (auto const& setting : settings) own.settings.push_back(setting.value);
  auto const all = group.exchange("open devices", own.pack());
  std::vector<Own> parts;
  std::vector<DeviceUse> uses;
  std::vector<Offer> offers;
  std::vector<SeparatePair> separate;
  std::vector<std::string> names;
  for (u32 process = 0; process < all.size(); ++process) {
    parts.push_back(Own::unpack(process, all[process]));
    std::ranges::copy(parts.back().uses, std::back_inserter(uses));
    std::ranges::copy(parts.back().offers, std::back_inserter(offers));
    std::ranges::copy(parts.back().separate, std::back_inserter(separate));
    names.push_back(group.processes().name(process));
  }
  layout.ranks_per_device = ranks_asked_for(parts);
  for (auto const& part : parts)
    for (std::size_t i = 0; i < settings.size(); ++i)
      agree(parts, parts.front(), part, settings[i], parts.front().settings.at(i),
            part.settings.at(i));
  auto const refusals = try_to_map(group, offers, opened);
  divide_domains(parts, refusals);
  add_devices(layout, parts, group);
  u32 usual = ~0u;
  for (u32 process = 0; process < parts.size(); ++process)
    if (!parts[process].devices.empty())
      usual = std::min(usual, std::max(1u, parts[process].default_ranks / sharers(uses, process)));
  layout.sharers = sharers(uses, group.number());
  choose_ranks(layout, usual);
  if (group.number() != 0) return layout;
  for (auto const& warnings : {turns_taken(uses), slow_paths(refusals, separate, names)})
    for (auto const& warning : warnings) warn(warning);
  return layout;
}

}  // namespace meshpost
