#include "rma/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"

namespace meshpost::detail {
namespace {

// Bytes that a rank may bring to one step of a collective. With the largest slot, barriers are some
// percent of a step's time for one rank a GPU. The smallest slot takes an element of any type.
constexpr u64 smallest_slot = 256, largest_slot = u64{512} << 10;

u64 fingerprint(std::vector<i64> const& numbers) {
  return hash_of({reinterpret_cast<char const*>(numbers.data()), numbers.size() * sizeof(i64)});
}

}  // namespace

Communicators::Communicators(u32 world, WorldMemory const& memory, Bytes budget)
    : WorldMemory(memory), number_(world), budget_(budget) {
  world_ = make(Communicator::Shape::world, 1, layout_.device_count());
  device_ = make(Communicator::Shape::device, layout_.device_count(), layout_.device_count());
}

u64 Communicators::upload(void const* data, u64 bytes) {
  u64 const offset = heap_.allocate(bytes);
  for (u32 own = 0; own < layout_.own_count(); ++own)
    layout_.devices[own]->write(heap_.at(layout_.first_device + own, offset), data, Bytes{bytes});
  return offset;
}

Communicator Communicators::make(Communicator::Shape shape, u32 groups, u32 places) {
  Communicator made;
  made.world = number_;
  made.number = next_++;
  made.shape = shape;
  bool const of_device = shape == Communicator::Shape::device;
  made.slots = of_device ? layout_.ranks_per_device : layout_.ranks();
  // A device of such a communicator has one part only, though its table has those of all devices.
  u64 const all_slots = u64{2} * (made.slots + (of_device ? 1 : std::max(places, 1u)));
  u64 const of_slot = budget_.value / (shape == Communicator::Shape::world ? 1 : 4) / all_slots;
  made.slot = static_cast<u32>(
      std::clamp(of_slot / smallest_slot * smallest_slot, smallest_slot, largest_slot));
  made.barriers =
      heap_.allocate_swept(Heap::Swept::words, std::max(groups, 1u) * sizeof(BarrierWords));
  made.generations =
      heap_.allocate_swept(Heap::Swept::words, layout_.ranks_per_device * sizeof(u32));
  made.gather = heap_.allocate(u64{2} * made.slots * made.slot);
  made.place_count = of_device ? 1 : places;
  made.parts = heap_.allocate((all_slots - u64{2} * made.slots) * made.slot);
  return made;
}

Communicator Communicators::split(Communicator const& parent,
                                  std::function<i64(RankId)> const& color) {
  if (parent.world != number_)
    throw Error(
        Kind::bad_argument, "split",
        fmt::format("the communicator belongs to world {}, not to {}", parent.world, number_),
        "split a communicator of the same World");
  std::vector<i64> colors(layout_.ranks());
  std::map<std::pair<i64, i64>, i64> numbers;  // (the parent's group, color) -> color in the world
  for (u32 rank = 0; rank < colors.size(); ++rank) {
    i64 const group = parent.shape == Communicator::Shape::world ? 0
                      : parent.shape == Communicator::Shape::device
                          ? layout_.device_of(rank)
                          : colors_.at(parent.number)[rank];
    i64 const own = color(RankId{rank});
    bool const member = group >= 0 && own >= 0;
    colors[rank] =
        member ? numbers.try_emplace({group, own}, static_cast<i64>(numbers.size())).first->second
               : -1;
  }
  group_.exchange(fmt::format("split communicator {} into {} groups, {:#x}", parent.number,
                              numbers.size(), fingerprint(colors)));
  auto const tables = make_groups(colors, layout_.ranks_per_device);
  Communicator made =
      make(Communicator::Shape::split, tables.group_count, static_cast<u32>(tables.places.size()));
  made.groups = upload(tables.groups.data(), tables.groups.size() * sizeof(Group));
  made.members = upload(tables.members.data(), tables.members.size() * sizeof(u32));
  made.places = upload(tables.places.data(), tables.places.size() * sizeof(u32));
  colors_[made.number] = std::move(colors);
  return made;
}

std::string Communicators::name(u32 number) const {
  if (number == world_.number) return "the world";
  if (number == device_.number) return "its device";
  return fmt::format("communicator {}", number);
}

bool Communicators::same_group(u32 one, u32 other, u32 communicator) const {
  if (communicator == world_.number) return true;
  if (communicator == device_.number) return layout_.device_of(one) == layout_.device_of(other);
  auto const colors = colors_.find(communicator);
  return colors != colors_.end() && colors->second[one] == colors->second[other];
}

}  // namespace meshpost::detail
