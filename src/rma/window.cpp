#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rma/world_state.hpp"

// What a World does with its windows.

namespace meshpost::detail {
namespace {

u64 padded(u64 bytes, u64 unit) { return (bytes + unit - 1) / unit * unit; }

// Equal where processes ask for the same.
std::string wish(World::WindowSpec const& spec) {
  auto text =
      fmt::format("make window '{}' of {} elements of {} bytes with {} tags over {}", spec.name,
                  spec.count, spec.element_bytes, spec.tags.value, spec.communicator.number);
  for (auto const& extent : spec.extents)
    text += fmt::format(" {}+{}", extent.offset, extent.count);
  return text;
}

}  // namespace

std::vector<Part> WorldState::place_extents(World::WindowSpec const& spec, WindowRecord& record) {
  u64 elements = 0;
  for (auto const& extent : spec.extents)
    elements = std::max(elements, extent.offset + extent.count);
  record.data_bytes = elements * spec.element_bytes;
  record.info.offset = heap_.allocate(record.data_bytes);
  std::vector<Part> parts;
  for (u32 rank = 0; rank < spec.extents.size(); ++rank) {
    char* const block = heap_.at(layout_.device_of(rank), record.info.offset);
    parts.push_back(
        {block + spec.extents[rank].offset * spec.element_bytes, spec.extents[rank].count});
  }
  return parts;
}

// Each device gets the table with the addresses that it has for the parts.
u64 WorldState::upload_parts(WindowRecord const& record) {
  u64 const offset = heap_.allocate(record.parts.size() * sizeof(Part));
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    auto parts = record.parts;
    for (u32 rank = 0; rank < parts.size() && record.data_bytes != 0; ++rank) {
      u32 const device = layout_.device_of(rank);
      auto const at = static_cast<char*>(parts[rank].data) - heap_.at(device, 0);
      parts[rank].data = heap_.spaces().seen_by(own, device, static_cast<u64>(at));
    }
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, offset), parts.data(),
                                Bytes{parts.size() * sizeof(Part)});
  }
  return offset;
}

void WorldState::check_memory(World::WindowSpec const& spec) {
  backend(layout_.kinds.front()).connect(layout_.devices);
  for (u32 rank = 0; rank < spec.memory.size(); ++rank) {
    auto const& part = spec.memory[rank];
    if (part.count == 0) continue;
    auto const& device = layout_.devices[layout_.device_of(rank)];
    auto const where = device->locate(part.data);
    auto const refuse = [&](std::string cause) {
      throw Error(Kind::bad_argument, "register_memory",
                  fmt::format("rank {}'s part at {}: {}", rank, part.data, cause),
                  fmt::format("give memory of {}", device->name()));
    };
    if (!part.data) refuse(fmt::format("{} elements at a null pointer", part.count));
    if (!where.usable || where.kind != MemoryKind::device)
      refuse(fmt::format("it is not memory of {}", device->name()));
    if (part.count > where.extent / spec.element_bytes)
      refuse(fmt::format("{} bytes are named, its allocation ends after {}",
                         part.count * spec.element_bytes, where.extent));
  }
}

WindowInfo WorldState::make_window(World::WindowSpec const& spec) {
  guard("window");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  u64 const ranks = layout_.ranks();
  auto const refuse = [](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, "window", std::move(cause), std::move(remedy));
  };
  peers_.exchange(wish(spec));
  if (spec.communicator.world != number_)
    refuse(fmt::format("the communicator belongs to world {}, not to {}", spec.communicator.world,
                       number_),
           "use a communicator of the same World");
  if (!spec.memory.empty() && !peers_.alone())
    throw Error(Kind::bad_argument, "register_memory",
                "memory of the user can't be reached by other processes",
                "make a window and copy, or a World of this process (WorldOptions::alone)");
  if (!spec.memory.empty() && proxy_)
    throw Error(Kind::bad_argument, "register_memory",
                "memory of the user can't be reached by devices that need the host for it",
                "make a window and copy, or a World of devices that reach each other's memory");
  constexpr u32 most_tags = 1u << 16;
  if (spec.tags.value > most_tags)
    refuse(
        fmt::format("{} tags were asked for; a window has at most {}", spec.tags.value, most_tags),
        "use fewer tags");
  for (u64 const given : {spec.extents.size(), spec.memory.size()})
    if (given != 0 && given != ranks)
      refuse(fmt::format("{} parts were given for {} ranks", given, ranks),
             "give one for each rank of the world");
  u64 const stride = heap_.spaces().stride();
  u64 const most = stride / spec.element_bytes;
  for (auto const& extent : spec.extents)
    if (extent.offset > most || extent.count > most - extent.offset)
      refuse(fmt::format("a part of {} elements at {} is larger than a device", extent.count,
                         extent.offset),
             "use smaller parts");
  if (spec.count > most / layout_.ranks_per_device)
    throw Error(
        Kind::out_of_memory, "window",
        fmt::format(
            "{} ranks a device with {} elements of {} bytes each don't fit in a device's {} bytes",
            layout_.ranks_per_device, spec.count, spec.element_bytes, stride),
        "use smaller windows");

  WindowRecord record;
  WindowInfo& info = record.info;
  info.world = number_;
  info.number = next_window_;
  info.communicator = spec.communicator;
  info.tags = spec.tags.value;
  info.counter_part = static_cast<u32>(padded(info.tags * sizeof(u32), 64));
  record.element_bytes = spec.element_bytes;
  record.name = spec.name.empty() ? fmt::format("window {}", info.number)
                                  : fmt::format("window '{}'", spec.name);
  if (!spec.memory.empty()) {
    check_memory(spec);
    record.parts = spec.memory;
    auto& kind = backend(layout_.kinds.front());
    for (auto const& part : spec.memory) {
      if (part.count == 0 || memory_map().find(part.data)) continue;
      auto range = kind.identify(part.data);  // all of the allocation: parts may overlap
      if (!range) continue;
      range->id = 0;
      record.registered.push_back(std::make_unique<Registered>(*range));
    }
  } else if (!spec.extents.empty()) {
    record.parts = place_extents(spec, record);
  } else {
    info.count = spec.count;
    info.pitch = padded(spec.count * spec.element_bytes, 128);
    record.data_bytes = info.pitch * layout_.ranks_per_device;
    if (record.data_bytes != 0) info.offset = heap_.allocate(record.data_bytes);
  }
  for (u32 own = 0; own < layout_.own_count() && record.data_bytes != 0; ++own)
    layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.offset), 0,
                               Bytes{record.data_bytes});
  if (!record.parts.empty()) info.parts = upload_parts(record);
  record.counter_bytes = u64{info.counter_pitch()} * layout_.ranks_per_device;
  if (record.counter_bytes != 0) info.counters = heap_.allocate_counters(record.counter_bytes);
  if (info.parts == 0 && info.communicator.shape == Communicator::Shape::world)
    info.uniform_world = number_;
  peers_.exchange("fill a window");  // nobody writes into a part before it was zeroed
  ++next_window_;
  return windows_.emplace(info.number, std::move(record)).first->second.info;
}

WindowRecord& WorldState::record_of(WindowInfo const& info, std::string_view operation) {
  auto const found = windows_.find(info.number);
  if (info.world != number_ || found == windows_.end())
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("window {} of world {} does not exist", info.number, info.world),
                "use windows until they are freed, with the World that made them");
  return found->second;
}

void WorldState::free_window(WindowInfo const& info) {
  guard("free");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  peers_.exchange(fmt::format("free window {}", info.number));
  auto const& record = record_of(info, "free");
  if (record.data_bytes != 0) heap_.release(info.offset, record.data_bytes);
  if (info.parts != 0) heap_.release(info.parts, record.parts.size() * sizeof(Part));
  if (record.counter_bytes != 0) heap_.release_counters(info.counters, record.counter_bytes);
  windows_.erase(info.number);
}

void WorldState::transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
                          void* target, void const* source, u64 count) {
  auto const operation = target ? "read" : "write";
  guard(operation);
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  auto const& record = record_of(window, operation);
  if (rank >= layout_.ranks())
    throw Error(
        Kind::bad_argument, operation,
        fmt::format("rank {} does not exist in a world of {} ranks", rank.value, layout_.ranks()),
        fmt::format("use ranks from 0 to {}", layout_.ranks() - 1));
  u32 const device = layout_.device_of(rank);
  u64 const limit = record.parts.empty() ? record.info.count : record.parts[rank].count;
  if (offset > limit || count > limit - offset)
    throw Error(Kind::bad_argument, fmt::format("{} {}", operation, record.name),
                fmt::format("elements {} to {} of rank {} were named; it has {}", offset,
                            offset + count, rank.value, limit),
                "stay inside the part");
  if (count == 0) return;
  auto* const part =
      record.parts.empty()
          ? heap_.at(device,
                     record.info.offset + u64{rank % layout_.ranks_per_device} * record.info.pitch)
          : static_cast<char*>(record.parts[rank].data);
  char* const at = part + offset * element_bytes;
  Bytes const size{count * element_bytes};
  bool const mapped = layout_.devices.empty() && layout_.kinds[device] == "cpu" &&
                      !peers_.far(layout_.processes[device]);
  if (auto* const near = layout_.neighbour(device)) {
    if (target) near->read(target, at, size);
    else near->write(at, source, size);
  } else if (mapped) {
    std::memcpy(target ? target : at, target ? at : source, size);
  } else if (answering_) {
    transfer_far(device, static_cast<u64>(at - heap_.at(device, 0)), target, source, size);
  } else {
    throw Error(
        Kind::bad_environment, operation,
        fmt::format("{} is out of reach of a process without devices", layout_.names[device]),
        "read and write in a process that has some");
  }
}

// What a process asks another for: to read or write memory of its devices.
struct Question {
  u32 writes;
  u32 device;
  u64 offset, bytes;
};

void WorldState::transfer_far(u32 device, u64 offset, void* target, void const* source, u64 bytes) {
  constexpr u64 most = u64{8} << 20;
  for (u64 at = 0; at < bytes; at += most) {
    Question const question{!target, device, offset + at, std::min(most, bytes - at)};
    std::string text(reinterpret_cast<char const*>(&question), sizeof question);
    if (!target) text.append(static_cast<char const*>(source) + at, question.bytes);
    auto const reply = peers_.processes().ask(peers_.channel(), layout_.processes[device], text);
    if (reply.size() != 1 + (target ? question.bytes : 0))
      throw Error(Kind::peer_lost, target ? "read" : "write",
                  fmt::format("{} has this World no more",
                              peers_.processes().name(layout_.processes[device])),
                  "keep the World until all processes have read what they want");
    if (target) std::memcpy(static_cast<char*>(target) + at, reply.data() + 1, question.bytes);
  }
}

// Runs of all processes end together: what the asker has seen end has ended here too.
std::string WorldState::answer(std::string_view text) const {
  Question question;
  if (text.size() < sizeof question) return {};
  std::memcpy(&question, text.data(), sizeof question);
  bool const fits = layout_.owns(question.device) && question.offset <= heap_.size() &&
                    question.bytes <= heap_.size() - question.offset;
  if (!fits || text.size() != sizeof question + (question.writes ? question.bytes : 0)) return {};
  Device& owner = layout_.own(question.device);
  char* const at = heap_.at(question.device, question.offset);
  std::string reply(1 + (question.writes ? 0 : question.bytes), '\1');
  if (question.writes) owner.write(at, text.data() + sizeof question, Bytes{question.bytes});
  else owner.read(reply.data() + 1, at, Bytes{question.bytes});
  return reply;
}

u64 WorldState::part_count(WindowInfo const& window, RankId rank) {
  std::scoped_lock const lock(mutex_);
  auto const& record = record_of(window, "read");
  if (rank >= layout_.ranks()) return 0;  // transfer refuses it, with the numbers
  return record.parts.empty() ? record.info.count : record.parts[rank].count;
}

std::string WorldState::describe(void const* address) const {
  auto const* const at = static_cast<char const*>(address);
  for (auto const& [number, window] : windows_)
    for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
      u64 const offset =
          window.info.offset + u64{rank % layout_.ranks_per_device} * window.info.pitch;
      auto const* const part = window.parts.empty()
                                   ? heap_.at(layout_.device_of(rank), offset)
                                   : static_cast<char const*>(window.parts[rank].data);
      u64 const count = window.parts.empty() ? window.info.count : window.parts[rank].count;
      if (at >= part && at < part + count * window.element_bytes)
        return fmt::format("{} of rank {} at element {}", window.name, rank,
                           static_cast<u64>(at - part) / window.element_bytes);
    }
  return fmt::format("address {}", address);
}

}  // namespace meshpost::detail
