#include "rma/windows/windows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"

namespace meshpost::detail {
namespace {

u64 padded(u64 bytes, u64 unit) { return (bytes + unit - 1) / unit * unit; }

// " in parts: 64 of 0+128". Further ones, which may be many, are in a number.
std::string described(std::vector<Extent> const& extents) {
  constexpr std::size_t most = 4;
  std::string text, others;
  std::size_t groups = 0;
  for (auto begin = extents.begin(); begin != extents.end(); ++groups) {
    auto const end = std::find_if(begin, extents.end(), [&](auto const& one) {
      return one.offset != begin->offset || one.count != begin->count;
    });
    (groups < most ? text : others) +=
        fmt::format("{}{} of {}+{}", groups == 0 ? " in parts: " : ", ", end - begin, begin->offset,
                    begin->count);
    begin = end;
  }
  if (others.empty()) return text;
  return fmt::format("{} and {} more with check sum {:x}", text, groups - most, hash_of(others));
}

// Equal if processes request the same.
std::string description(World::WindowSpec const& spec) {
  auto text = fmt::format(
      "make window '{}' of {} elements of {} bytes with {} tags over communicator {}", spec.name,
      spec.count, spec.element_bytes, spec.tags.value, spec.communicator.number);
  text += described(spec.extents);
  if (!spec.memory.empty())
    text += fmt::format(" in memory of the user for {} ranks", spec.memory.size());
  return text;
}

// The distance from the part of a rank to that of the next one on its device, in elements, if it is
// the same everywhere, as are the counts. Parts may overlap, or be one.
std::optional<u64> pitch_of(std::vector<Extent> const& extents, u32 ranks_per_device) {
  u64 const pitch = ranks_per_device > 1 ? extents[1].offset : 0;
  for (std::size_t rank = 0; rank < extents.size(); ++rank)
    if (extents[rank].count != extents[0].count ||
        extents[rank].offset != rank % ranks_per_device * pitch)
      return std::nullopt;
  return pitch;
}

}  // namespace

void Windows::place_extents(World::WindowSpec const& spec, WindowRecord& record) {
  u64 elements = 0;
  for (auto const& extent : spec.extents)
    elements = std::max(elements, extent.offset + extent.count);
  record.data_bytes = elements * spec.element_bytes;
  record.info.offset = heap_.allocate(record.data_bytes);
  if (auto const pitch = pitch_of(spec.extents, layout_.ranks_per_device)) {
    // Uniform: ranks reach its parts without a table.
    record.info.count = spec.extents[0].count;
    record.info.pitch = *pitch * spec.element_bytes;
    return;
  }
  for (u32 rank = 0; rank < spec.extents.size(); ++rank) {
    auto const& [offset, count] = spec.extents[rank];
    u64 const begin = record.info.offset + offset * spec.element_bytes;
    record.parts.push_back({count, {layout_.device_of(rank), begin}});
  }
}

GlobalAddress Windows::address_of(WindowRecord const& record, u32 rank) const {
  if (!record.parts.empty()) return record.parts[rank].address;
  u64 const local = rank % layout_.ranks_per_device;
  return {layout_.device_of(rank), record.info.offset + local * record.info.pitch};
}

char* Windows::part_of(std::optional<u32> own, WindowRecord const& record, u32 rank) const {
  auto const address = address_of(record, rank);
  bool const users = GlobalAddresses::is_users(address.offset);
  if (own && (!users || layout_.far(*own, address.device)))
    return addresses_.seen_by(*own, address);
  if (!users) return heap_.at(address.device, address.offset);
  if (layout_.owns(address.device)) return addresses_.memory(address, 0);
  auto* const device = own ? physical(layout_.devices[*own]).get() : nullptr;
  auto const found = record.users->mapped.find({device, rank});
  return found == record.users->mapped.end() ? nullptr : found->second;
}

// Each device gets the table with its own addresses for the parts.
void Windows::upload_parts(WindowRecord const& record) {
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    std::vector<Part> parts;
    parts.reserve(record.parts.size());
    for (u32 rank = 0; rank < record.parts.size(); ++rank)
      parts.push_back({part_of(own, record, rank), record.parts[rank].count});
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, record.info.parts),
                                parts.data(), Bytes{parts.size() * sizeof(Part)});
  }
}

// The record holds each piece of the heap as soon as it is taken.
void Windows::furnish(World::WindowSpec const& spec, WindowRecord& record) {
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
  if (info.communicator.shape == Communicator::Shape::world) info.whole_world = number_;
  record.host_bytes = info.tags == 0 ? 0 : info.endpoint_bytes();
  if (record.host_bytes != 0) info.host_counters = heap_.allocate(record.host_bytes);
  record.host = std::make_shared<HostCounters>(info);
  // Nobody writes into a part before it is zeroed.
  group_.together("fill a window", [&] {
    endpoints_.know(record.host);  // behind this meeting others may notify its endpoints
    for (u32 own = 0; own < layout_.own_count() && record.data_bytes != 0; ++own)
      layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.offset), 0,
                                 Bytes{record.data_bytes});
    // These are 0 already, except the words for the last raisers, in memory of a freed window.
    for (u32 own = 0; own < layout_.own_count() && record.counter_bytes != 0; ++own)
      layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.counters), 0,
                                 Bytes{record.counter_bytes});
    for (u32 own = 0; own < layout_.own_count() && record.host_bytes != 0; ++own)
      layout_.devices[own]->fill(heap_.at(layout_.first_device + own, info.host_counters), 0,
                                 Bytes{record.host_bytes});
    if (info.parts != 0) upload_parts(record);
  });
}

WindowInfo Windows::make(World::WindowSpec const& spec) {
  u64 const ranks = layout_.ranks();
  auto const refuse = [](std::string cause, std::string remedy) {
    throw Error(Kind::bad_argument, "window", std::move(cause), std::move(remedy));
  };
  group_.exchange(description(spec));
  if (spec.communicator.world != number_)
    refuse(fmt::format("the communicator belongs to world {}, not to {}", spec.communicator.world,
                       number_),
           "use a communicator of the same World");
  constexpr u32 most_tags = 1u << 16;
  // A counter and the word for its origin fit into one signal.
  static_assert(most_tags * sizeof(u32) / via::Signal::unit < 1u << 15);
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
  info.number = next_;
  info.communicator = spec.communicator;
  info.tags = spec.tags.value;
  info.counter_part = static_cast<u32>(padded(info.tags * sizeof(u32), 64));
  record.element_bytes = spec.element_bytes;
  record.name = spec.name.empty() ? fmt::format("window {}", info.number)
                                  : fmt::format("window '{}'", spec.name);
  try {
    furnish(spec, record);
  } catch (...) {
    endpoints_.forget(info.number);
    give_back(record);
    throw;
  }
  ++next_;
  return windows_.emplace(info.number, std::move(record)).first->second.info;
}

Error never_made(Kind kind, std::string_view operation) {
  return {kind, std::string(operation), "its window was never made", "make it with World::window"};
}

WindowRecord const& Windows::record_of(WindowInfo const& info, std::string_view operation) const {
  auto const found = windows_.find(info.number);
  if (info.world == number_ && found == windows_.end() && info.number < next_)
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("{} was freed before", freed_.name(info.number)),
                "use windows until they are freed");
  if (info.world == 0) throw never_made(Kind::bad_argument, operation);
  if (info.world != number_ || found == windows_.end())
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("window {} of world {} does not exist", info.number, info.world),
                "use windows until they are freed, with the World that made them");
  return found->second;
}

// Gives back a window's memory in the heap, also that of an unfinished window.
void Windows::give_back(WindowRecord const& record) {
  auto const& info = record.info;
  if (info.offset != 0) heap_.release(info.offset, record.data_bytes);
  if (info.parts != 0) heap_.release(info.parts, record.parts.size() * sizeof(Part));
  if (info.counters != 0) heap_.release_swept(info.counters, record.counter_bytes);
  if (info.host_counters != 0) heap_.release(info.host_counters, record.host_bytes);
}

bool Windows::unmap() {
  bool any = false;
  for (auto& [number, window] : windows_) {
    if (!window.users) continue;
    window.users->unmap();
    any = true;
  }
  return any;
}

void Windows::free(WindowInfo const& info) {
  auto const operation = fmt::format("free window {}", info.number);
  group_.together(operation, [&] {
    auto const& record = record_of(info, "free");
    freed_.prepare(info.number, record.name, layout_.devices);
  });
  freed_.add();  // in all processes or in none
  auto const found = windows_.extract(info.number);
  auto const& record = found.mapped();
  endpoints_.forget(info.number);
  for (u32 own = 0; own < layout_.own_count() && record.counter_bytes != 0; ++own) {
    auto* const counters =
        reinterpret_cast<u32*>(heap_.at(layout_.first_device + own, record.info.counters));
    endpoint_.forget(counters, counters + record.counter_bytes / sizeof(u32));
  }
  give_back(record);
  if (!record.users) return;
  record.users->unmap();
  group_.exchange(operation);  // nobody has it mapped any more
}

std::string Windows::name(u32 number) const {
  auto const found = windows_.find(number);
  return found == windows_.end() ? freed_.name(number) : found->second.name;
}

std::string Windows::describe(void const* address) const {
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
