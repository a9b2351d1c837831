// Exposing memory: all processes learn of all parts, and how to reach them.
#include <fmt/format.h>

#include <algorithm>

#include "copy/devices.hpp"
#include "copy/job/rings.hpp"
#include "copy/job/state.hpp"
#include "copy/locate.hpp"
#include "meshpost/base/events.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost {

using copying::PartInfo;

void JobMemory::State::name_allocation(PartInfo& part, char* memory, copying::Location const& where,
                                       std::vector<Descriptor>& files_to_pass) {
  Offered offered;
  try {
    offered = offer(memory, where.on_host ? nullptr : where.device);
  } catch (Error const& error) {
    part.why = error.cause() + "; " + error.remedy();
    return;
  }
  u64 const offset = static_cast<u64>(memory - offered.begin);
  if (part.size > offered.mappable.size - offset) {  // of neighbours that the memory map joins
    part.why = "it reaches over several allocations";
    return;
  }
  part.allocation = std::move(offered.mappable);
  part.offset = offset;
  part.allocation.with_file =
      offered.file && std::ranges::find(passed_, part.allocation.name) == passed_.end();
  if (part.allocation.with_file) files_to_pass.push_back(std::move(offered.file));
}

void JobMemory::State::tell_what_is_gone(PartInfo& part) {
  std::unique_lock const lock(mutex_);
  std::erase_if(gone_, [&](auto const& gone) { return exposes(gone); });  // again, meanwhile
  part.freed = gone_;
  for (auto const& gone : gone_) std::erase(passed_, gone);  // if it comes again, it is new
}

// One that copies here know: the same as the owner's, else any that may reach it.
Device* JobMemory::State::device_for(PartInfo const& part) {
  Device* any = nullptr;
  for (auto const& device : copying::known_devices()) {
    if (device->kind() != part.allocation.name.kind) continue;
    if (!any || device->info().bus == part.bus) any = device.get();
  }
  return any;
}

PartInfo JobMemory::State::describe(void* memory, Bytes size, std::string const& name,
                                    std::vector<Descriptor>& files_to_pass) {
  PartInfo part;
  tell_what_is_gone(part);
  part.size = size;
  part.address = reinterpret_cast<u64>(memory);
  if (size != 0) {
    auto const where = copying::locate(memory, size, fmt::format("expose '{}'", name), "memory");
    part.memory = where.kind;
    part.on_host = where.on_host;
    if (where.device) {
      part.device = where.device->name();
      part.bus = where.device->info().bus;
    }
    if (!group.alone()) name_allocation(part, static_cast<char*>(memory), where, files_to_pass);
  }
  part.slot = epochs.take();
  return part;
}

std::shared_ptr<RemoteBytes::Exposure> JobMemory::State::expose(void* memory, Bytes size,
                                                                std::string const& name) {
  std::scoped_lock const collective(collective_);
  auto const operation = fmt::format("expose '{}'", name);
  auto exposure = std::make_shared<RemoteBytes::Exposure>();
  exposure->job = shared_from_this();
  exposure->number = ++last_;
  exposure->name = name;
  exposure->known.resize(group.count());
  exposure->here.assign(group.count(), nullptr);
  std::vector<Descriptor> files_to_pass;
  std::optional<PartInfo> mine;
  try {
    group.together(operation, [&] {
      mine = describe(memory, size, name, files_to_pass);
      std::unique_lock const lock(mutex_);
      own_[exposure->number] = {mine->slot, static_cast<char*>(memory), size, name,
                                mine->allocation.name};
      if (mine->allocation.name.kind == "file") files_.insert(mine->allocation.name.id);
    });
    epochs.open(mine->slot, exposure->number);
    for (auto const& part : group.exchange(operation, mine->pack()))
      exposure->parts.push_back(PartInfo::unpack(part));
    {
      std::unique_lock const lock(mutex_);
      std::erase_if(gone_, [&](auto const& gone) {
        return std::ranges::find(mine->freed, gone) != mine->freed.end();
      });
    }
    std::vector<Descriptor> passed(group.count());
    if (!group.alone())
      group.node().share(files_to_pass, [&](u32 process, u32, int file) {
        passed[process] = Descriptor::copy_of(file);
      });
    if (mine->allocation.with_file) passed_.push_back(mine->allocation.name);
    for (u32 process = 0; process < group.count(); ++process) {
      for (auto const& freed : exposure->parts[process].freed) imports_.drop(process, freed);
      choose_path(*exposure, process, passed[process].get());
    }
    see_to_staging(*exposure);
  } catch (...) {
    release(exposure->number);
    throw;
  }
  exposure->here[group.number()] = static_cast<char*>(memory);
  see_arrivals();
  return exposure;
}

void JobMemory::State::meet(std::string const& name) {
  std::scoped_lock const collective(collective_);
  group.exchange(fmt::format("meet '{}'", name), {}, Waiters::patient);
  see_arrivals();
}

void JobMemory::State::choose_path(RemoteBytes::Exposure& exposure, u32 process, int file) {
  auto const& part = exposure.parts[process];
  auto& known = exposure.known[process];
  known = {Bytes{part.size}, part.memory, part.device, !group.far(process), CopyPath::own, {}};
  if (process == group.number()) return;
  if (group.far(process)) {
    known.path = CopyPath::network;
    known.why = "it is on another node: " + group.node().why_not(process);
    return;
  }
  known.path = CopyPath::mapped;
  if (part.size == 0) return;
  known.why = part.why;
  bool refused = !part.on_host;  // by the system: the user should know
  if (fastest_ > CopyPath::mapped) {
    known.why = "JobMemoryOptions::fastest";
    refused = false;
  } else if (!part.allocation.name.kind.empty()) {
    try {
      exposure.here[process] =
          imports_.map(process, part.allocation, part.offset, part.size, device_for(part), file);
      known.why.clear();
      return;
    } catch (Error const& error) {
      known.why = error.cause() + "; " + error.remedy();
      refused = true;
    }
  }
  known.path = CopyPath::kernel;
  bool const permitted = part.on_host && fastest_ <= CopyPath::kernel && other.reaches(process) &&
                         other.readable(process, part.address, part.size);
  if (!permitted) {
    known.path = CopyPath::staged;
    if (part.on_host && fastest_ <= CopyPath::kernel) {
      known.why = other.reaches(process) ? "the system can't read memory of this driver"
                                         : other.why_not(process);
      refused = true;
    }
  }
  if (refused) warn_once(process, known.why);
}

void JobMemory::State::warn_once(u32 process, std::string const& text) {
  if (warned_) return;
  warned_ = true;
  warn(fmt::format("copies from and to memory of {} take a slower path: {}",
                   group.processes().name(process), text));
}

// The first exposure that needs it, in any process, makes all have it.
void JobMemory::State::see_to_staging(RemoteBytes::Exposure const& exposure) {
  if (group.alone()) return;
  bool const mine = std::ranges::any_of(
      exposure.known, [](auto const& part) { return part.path == CopyPath::staged; });
  auto const all = group.exchange("expose '" + exposure.name + "'", mine ? "staged" : "");
  bool const any = std::ranges::any_of(all, [](auto const& text) { return !text.empty(); });
  if (!any || staged_) return;
  auto rings = std::make_unique<copying::Rings>(group);
  std::unique_ptr<copying::CopyServer> server;
  // Together: where this fails in one, the others must not take its part for exposed.
  group.together("expose '" + exposure.name + "'", [&] {
    server = make_server(std::move(rings), staged_notices);
    progress_thread.start();
  });
  staged_ = server.get();
  progress_thread.add(std::move(server));
}

}  // namespace meshpost
