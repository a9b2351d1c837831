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
  if (!spec.memory.empty())
    text += fmt::format(" in memory of the user for {} ranks", spec.memory.size());
  return text;
}

}  // namespace

void WorldState::place_extents(World::WindowSpec const& spec, WindowRecord& record) {
  u64 elements = 0;
  for (auto const& extent : spec.extents)
    elements = std::max(elements, extent.offset + extent.count);
  record.data_bytes = elements * spec.element_bytes;
  record.info.offset = heap_.allocate(record.data_bytes);
  for (u32 rank = 0; rank < spec.extents.size(); ++rank) {
    auto const& [offset, count] = spec.extents[rank];
    u64 const place = record.info.offset + offset * spec.element_bytes;
    record.parts.push_back({count, {layout_.device_of(rank), place}});
  }
}

Place WorldState::place_of(WindowRecord const& record, u32 rank) const {
  if (!record.parts.empty()) return record.parts[rank].place;
  u64 const local = rank % layout_.ranks_per_device;
  return {layout_.device_of(rank), record.info.offset + local * record.info.pitch};
}

char* WorldState::part_of(std::optional<u32> own, WindowRecord const& record, u32 rank) const {
  auto const place = place_of(record, rank);
  bool const users = Places::is_users(place.offset);
  if (own && (!users || layout_.far(*own, place.device))) return places_.seen_by(*own, place);
  if (!users) return heap_.at(place.device, place.offset);
  if (layout_.owns(place.device)) return places_.memory(place, 0);
  auto* const device = own ? physical(layout_.devices[*own]).get() : nullptr;
  auto const found = record.users->mapped.find({device, rank});
  return found == record.users->mapped.end() ? nullptr : found->second;
}

// Each device gets the table with the addresses that it has for the parts.
void WorldState::upload_parts(WindowRecord const& record) {
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    std::vector<Part> parts;
    parts.reserve(record.parts.size());
    for (u32 rank = 0; rank < record.parts.size(); ++rank)
      parts.push_back({part_of(own, record, rank), record.parts[rank].count});
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, record.info.parts),
                                parts.data(), Bytes{parts.size() * sizeof(Part)});
  }
}

// What it takes of the heap is in the record as soon as it is taken.
void WorldState::furnish_window(World::WindowSpec const& spec, WindowRecord& record) {
  WindowInfo& info = record.info;
  if (!spec.memory.empty()) {
    register_memory(spec, record);
  } else if (!spec.extents.empty()) {
    place_extents(spec, record);
  } else {
    info.count = spec.count;
    info.pitch = padded(spec.count * spec.element_bytes, 128);
    record.data_bytes = info.pitch * layout_.ranks_per_device;
    if (record.data_bytes != 0) info.offset = heap_.allocate(record.data_bytes);
  }
  if (!record.parts.empty()) info.parts = heap_.allocate(record.parts.size() * sizeof(Part));
  record.counter_bytes = u64{info.counter_pitch()} * layout_.ranks_per_device;
  if (record.counter_bytes != 0)
    info.counters = heap_.allocate_swept(Heap::Swept::counters, record.counter_bytes);
  if (info.parts == 0 && info.communicator.shape == Communicator::Shape::world)
    info.uniform_world = number_;
  record.host_bytes = info.counter_part;
  if (record.host_bytes != 0) info.host_counters = heap_.allocate(record.host_bytes);
  record.host = std::make_shared<HostCounters>(info.tags);
  // Nobody writes into a part before it was zeroed.
  peers_.together("fill a window", [&] {
    for (u32 own = 0; own < layout_.own_count() && record.data_bytes != 0; ++own)
      layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.offset), 0,
                                 Bytes{record.data_bytes});
    // What is 0 there already but for who raised them last, of a window that was freed.
    for (u32 own = 0; own < layout_.own_count() && record.counter_bytes != 0; ++own)
      layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.counters), 0,
                                 Bytes{record.counter_bytes});
    if (record.host_bytes != 0 && layout_.own_count() != 0)
      layout_.devices.front()->fill(heap_.at(layout_.first_device, info.host_counters), 0,
                                    Bytes{record.host_bytes});
    if (info.parts != 0) upload_parts(record);
  });
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
  try {
    furnish_window(spec, record);
  } catch (...) {
    give_back(record);
    throw;
  }
  ++next_window_;
  return windows_.emplace(info.number, std::move(record)).first->second.info;
}

WindowRecord& WorldState::record_of(WindowInfo const& info, std::string_view operation) {
  auto const found = windows_.find(info.number);
  if (info.world == number_ && found == windows_.end() && info.number < next_window_)
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("{} was freed before", freed_.name(info.number)),
                "use windows until they are freed");
  if (info.world != number_ || found == windows_.end())
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("window {} of world {} does not exist", info.number, info.world),
                "use windows until they are freed, with the World that made them");
  return found->second;
}

// What a window has of the heap, or has so far.
void WorldState::give_back(WindowRecord const& record) {
  auto const& info = record.info;
  if (info.offset != 0) heap_.release(info.offset, record.data_bytes);
  if (info.parts != 0) heap_.release(info.parts, record.parts.size() * sizeof(Part));
  if (info.counters != 0) heap_.release_swept(info.counters, record.counter_bytes);
  if (info.host_counters != 0) heap_.release(info.host_counters, record.host_bytes);
}

void WorldState::free_window(WindowInfo const& info) {
  guard("free");
  std::unique_lock lock(mutex_);
  wait_until_idle(lock);
  auto const operation = fmt::format("free window {}", info.number);
  peers_.together(operation, [&] {
    auto const& record = record_of(info, "free");
    freed_.prepare(info.number, record.name, layout_.devices);
  });
  freed_.add();  // in all processes or in none
  auto const found = windows_.extract(info.number);
  auto const& record = found.mapped();
  {
    std::scoped_lock const of_host(record.host->mutex);
    record.host->freed = true;
  }
  for (u32 own = 0; own < layout_.own_count() && record.counter_bytes != 0; ++own) {
    auto* const counters =
        reinterpret_cast<u32*>(heap_.at(layout_.first_device + own, record.info.counters));
    endpoint_.forget(counters, counters + record.counter_bytes / sizeof(u32));
  }
  give_back(record);
  if (!record.users) return;
  record.users->unmap();
  peers_.exchange(operation);  // nobody has it mapped any more
}

// While the host takes part in all runs, it waits for none.
void WorldState::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  help(lock, [this] {
    return std::ranges::all_of(queue_, [](auto const& record) { return record->launch.with_host; });
  });
}

void WorldState::transfer(WindowInfo const& window, u64 element_bytes, RankId rank, u64 offset,
                          void* target, void const* source, u64 count) {
  auto const operation = source ? "write" : "read";
  guard(operation);
  std::unique_lock lock(mutex_);
  wait_for_turn(lock);
  transfer(record_of(window, operation), element_bytes, rank, offset, target, source, count);
}

void WorldState::transfer(WindowRecord const& record, u64 element_bytes, RankId rank, u64 offset,
                          void* target, void const* source, u64 count) {
  auto const operation = source ? "write" : "read";
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
  auto const near = layout_.neighbour(device);
  char* const part = part_of(near, record, rank);
  u64 const skipped = offset * element_bytes;
  Bytes const size{count * element_bytes};
  bool const mapped = part && layout_.devices.empty() && layout_.traits[device].in_host_memory &&
                      !peers_.far(layout_.processes[device]);
  if (near) {
    auto& through = *layout_.devices[*near];
    if (target) through.read(target, part + skipped, size);
    else through.write(part + skipped, source, size);
  } else if (mapped) {
    std::memcpy(target ? target : part + skipped, target ? part + skipped : source, size);
  } else if (layout_.apart) {
    auto const place = place_of(record, rank);
    transfer_far({device, place.offset + skipped}, target, source, size);
  } else {
    throw Error(
        Kind::bad_environment, operation,
        fmt::format("{} is out of reach of a process without devices", layout_.names[device]),
        "read and write in a process that has some");
  }
}

u64 WorldState::part_count(WindowInfo const& window, RankId rank) {
  guard("read");
  std::scoped_lock const lock(mutex_);
  auto const& record = record_of(window, "read");
  if (rank >= layout_.ranks()) return 0;  // transfer refuses it, with the numbers
  return record.parts.empty() ? record.info.count : record.parts[rank].count;
}

std::string WorldState::describe(void const* address) const {
  auto const* const at = static_cast<char const*>(address);
  for (auto const& [number, window] : windows_)
    for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
      auto const* const part = part_of(layout_.neighbour(layout_.device_of(rank)), window, rank);
      u64 const count = window.parts.empty() ? window.info.count : window.parts[rank].count;
      if (part && at >= part && at < part + count * window.element_bytes)
        return fmt::format("{} of rank {} at element {}", window.name, rank,
                           static_cast<u64>(at - part) / window.element_bytes);
    }
  return fmt::format("address {}", address);
}

}  // namespace meshpost::detail
