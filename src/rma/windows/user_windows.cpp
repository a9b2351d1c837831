// Windows over memory of users. Each process names its own ranks' parts. Processes of the node that
// reach these by loads and stores map their allocations. Others name them to the proxy
// (GlobalAddresses).
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rma/windows/windows.hpp"
#include "world/mappable.hpp"
#include "world/wire.hpp"

namespace meshpost::detail {
namespace {

constexpr char const* operation = "register_memory";
constexpr u32 none = ~u32{0};

// A process's message to the others about its ranks' parts.
struct Offer {
  struct Part {
    u64 count;
    u64 global_offset;  // its offset
    u64 offset;         // in its allocation
    u32 allocation;     // none: others need not map it
    u32 unused = 0;
  };
  std::vector<Mappable> allocations;
  std::vector<Part> parts;  // by own rank

  std::string pack() const {
    wire::Packer packer;
    packer.value(static_cast<u32>(allocations.size()));
    for (auto const& allocation : allocations) allocation.pack(packer);
    for (auto const& part : parts) packer.value(part);
    return packer.take();
  }
  static Offer unpack(std::string_view bytes) {
    wire::Unpacker unpacker(bytes);
    Offer offer;
    for (u32 left = unpacker.value<u32>(); left > 0; --left)
      offer.allocations.push_back(Mappable::unpack(unpacker));
    while (!unpacker.at_end()) offer.parts.push_back(unpacker.value<Part>());
    return offer;
  }
};

Error refusal(u32 rank, void const* at, std::string const& cause, std::string remedy) {
  return {Kind::bad_argument, operation, fmt::format("rank {}'s part at {}: {}", rank, at, cause),
          std::move(remedy)};
}

// The allocations that contain own parts, each once.
class Allocations {
 public:
  struct Found {
    u32 number;
    u64 offset;
  };
  /// \throws Error(bad_environment) if others can't map it
  Found find(Part const& part, u64 bytes, Device* device) {
    auto const* const at = static_cast<char const*>(part.data);
    auto const holds = [at](Offered const& one) {
      return at >= one.begin && at < one.begin + one.mappable.size;
    };
    auto known = std::ranges::find_if(all_, holds);
    if (known == all_.end()) known = all_.insert(all_.end(), offer(part.data, device));
    u64 const offset = static_cast<u64>(at - known->begin);
    if (bytes > known->mappable.size - offset)
      throw Error(Kind::bad_environment, operation, "it reaches over several allocations",
                  "name memory of one allocation");
    return {static_cast<u32>(known - all_.begin()), offset};
  }
  std::vector<Mappable> take(std::vector<Descriptor>& files) {
    std::vector<Mappable> taken;
    for (auto& one : all_) {
      taken.push_back(one.mappable);
      if (one.mappable.with_file) files.push_back(std::move(one.file));
    }
    return taken;
  }

 private:
  std::vector<Offered> all_;
};

}  // namespace

void Windows::check_memory(World::WindowSpec const& spec) {
  std::map<u32, std::vector<std::shared_ptr<Device>>> domains;
  for (u32 own = 0; own < layout_.own_count(); ++own)
    domains[layout_.domains[layout_.first_device + own]].push_back(layout_.devices[own]);
  for (auto const& [number, devices] : domains)
    backend(devices.front()->kind()).connect(physical_devices(devices));
  for (u32 rank = 0; rank < spec.memory.size(); ++rank) {
    auto const& part = spec.memory[rank];
    if (part.count == 0) continue;
    u32 const number = layout_.device_of(rank);
    if (!layout_.owns(number))
      throw refusal(rank, part.data, fmt::format("it must be memory of {}", layout_.names[number]),
                    "let each process name the parts of its own ranks, and leave others' empty");
    auto& device = layout_.own(number);
    auto const where = device.locate(part.data);
    auto const known = memory_map().find(part.data);
    u64 const extent =
        known ? std::min<u64>(where.extent,
                              known->size - static_cast<u64>(static_cast<char const*>(part.data) -
                                                             known->begin))
              : where.extent;
    auto const remedy = fmt::format("give memory of {}", device.name());
    if (!part.data)
      throw refusal(rank, part.data, fmt::format("{} elements at a null pointer", part.count),
                    remedy);
    // Other processes can't map pinned memory.
    bool const pinned = where.kind == MemoryKind::pinned && group_.alone();
    if (!where.usable || (where.kind != MemoryKind::device && !pinned))
      throw refusal(rank, part.data, fmt::format("it is not memory of {}", device.name()),
                    group_.alone() ? remedy + ", or pinned memory" : remedy);
    if (known && !known->live)
      throw refusal(rank, part.data, "it was freed", "keep it until the window is freed");
    if (part.count > extent / spec.element_bytes)
      throw refusal(rank, part.data,
                    fmt::format("{} elements of {} bytes are named, its allocation ends after {} "
                                "bytes",
                                part.count, spec.element_bytes, extent),
                    remedy);
  }
}

// True if a process of the node has no devices: it reads and writes the memory that it can map.
bool Windows::any_without_devices() const {
  return std::ranges::any_of(group_.node().members(), [this](u32 process) {
    return std::ranges::find(layout_.processes, process) == layout_.processes.end();
  });
}

std::string Windows::offer_memory(World::WindowSpec const& spec, WindowRecord& record,
                                  std::vector<Descriptor>& files) {
  Offer mine;
  Allocations allocations;
  for (u32 own = 0; own < layout_.own_count(); ++own) {
    u32 const device = layout_.first_device + own;
    auto* const whole = physical(layout_.devices[own]).get();
    auto& kind = backend(whole->kind());
    for (u32 local = 0; local < layout_.ranks_per_device; ++local) {
      u32 const rank = device * layout_.ranks_per_device + local;
      auto const& part = spec.memory[rank];
      u64 const bytes = part.count * spec.element_bytes;
      u64 const number = record.users->numbers + local;
      auto& told =
          mine.parts.emplace_back(Offer::Part{part.count, number * GlobalAddresses::each, 0, none});
      if (part.count == 0) continue;
      if (!memory_map().find(part.data))
        if (auto range = kind.identify(part.data)) {  // the whole allocation: parts may overlap
          range->id = 0;
          record.users->registered.push_back(std::make_unique<Registered>(*range));
        }
      // A part in the heap keeps its place there, because the heap has one order for all windows.
      if (auto const in_heap = addresses_.in_heap(own, part.data, bytes);
          in_heap && in_heap->device == device) {
        told.global_offset = in_heap->offset;
        continue;
      }
      told.global_offset = addresses_.add(device, number, part.data, bytes);
      if (group_.alone()) continue;
      bool const must = layout_.is_reached_elsewhere(device);
      if (!must && !(whole->in_host_memory() && any_without_devices())) continue;
      try {
        auto const found = allocations.find(part, bytes, whole);
        told.allocation = found.number;
        told.offset = found.offset;
      } catch (Error const& error) {
        if (must)
          throw refusal(rank, part.data, error.cause(),
                        error.remedy() +
                            ", or let devices reach each other through the host alone "
                            "(MESHPOST_REACH=device)");
      }
    }
  }
  mine.allocations = allocations.take(files);
  return mine.pack();
}

void Windows::take_memory(WindowRecord& record, std::vector<std::string> const& offers,
                          std::map<std::pair<u32, u32>, Descriptor> const& files) {
  u64 const most = heap_.spaces().stride() - GlobalAddresses::most_skew;
  record.parts.resize(layout_.ranks());
  std::vector<u32> taken(offers.size());  // of its parts
  std::vector<Offer> all;
  all.reserve(offers.size());
  for (auto const& text : offers) all.push_back(Offer::unpack(text));
  for (u32 rank = 0; rank < layout_.ranks(); ++rank) {
    u32 const device = layout_.device_of(rank), process = layout_.processes[device];
    auto const& offer = all[process];
    auto const& part = offer.parts.at(taken[process]++);
    u64 const bytes = part.count * record.element_bytes;
    record.parts[rank] = {part.count, {device, part.global_offset}};
    if (layout_.any_far() && bytes > most)
      throw Error(
          Kind::bad_argument, operation,
          fmt::format(
              "rank {}'s part has {} bytes; a device of {} has addresses for {}", rank, bytes,
              group_.alone() ? "this process" : group_.processes().name(group_.number()), most),
          "use smaller parts");
    if (layout_.owns(device) || part.allocation == none) continue;
    auto const& allocation = offer.allocations.at(part.allocation);
    auto const before = offer.allocations.begin() + part.allocation;
    auto const number = std::count_if(offer.allocations.begin(), before,
                                      [](auto const& one) { return one.with_file; });
    auto const file = files.find({process, static_cast<u32>(number)});
    auto const map_for = [&](Device* user) {
      auto& mapped = record.users->mapped[{user, rank}];
      if (!mapped)
        mapped = record.users->imports->map(process, allocation, part.offset, bytes, user,
                                            file == files.end() ? -1 : file->second.get());
    };
    for (u32 own = 0; own < layout_.own_count(); ++own)
      if (!layout_.far(own, device)) map_for(physical(layout_.devices[own]).get());
    if (layout_.devices.empty() && layout_.traits[device].in_host_memory && !group_.far(process))
      map_for(nullptr);
  }
}

void Windows::register_memory(World::WindowSpec const& spec, WindowRecord& record) {
  std::string mine;
  std::vector<Descriptor> files;
  group_.together(operation, [&] {
    check_memory(spec);
    record.users = std::make_unique<UserMemory>(addresses_);
    mine = offer_memory(spec, record, files);
  });
  auto const offers = group_.exchange(operation, std::move(mine));
  group_.together(operation, [&] {
    std::map<std::pair<u32, u32>, Descriptor> passed;
    if (!group_.alone())
      group_.node().share(files, [&](u32 process, u32 number, int file) {
        auto copy = Descriptor::copy_of(file);
        if (!copy)
          throw Error(Kind::bad_environment, operation, std::strerror(errno),
                      "raise the limit of open files (ulimit -n)");
        passed[{process, number}] = std::move(copy);
      });
    take_memory(record, offers, passed);
  });
}

}  // namespace meshpost::detail
