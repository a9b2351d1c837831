#include "copy/locate.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "copy/devices.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/device/backend.hpp"

namespace meshpost::copying {
namespace {

// Drivers' answers, by address. Like the library's own map, but the number of each hit is checked.
MemoryMap& foreign() {
  static auto* const one = new MemoryMap;
  return *one;
}

// msync(MS_ASYNC), which does nothing else on Linux, finds holes in a range. Its time depends on
// the number of mappings, not of pages. Drivers keep addresses of device memory mapped without
// access. So where there are such drivers, the kernel also tries to read both ends.
bool readable(void const* pointer, u64 size) {
  static u64 const page = static_cast<u64>(sysconf(_SC_PAGESIZE));
  auto* const first = static_cast<char*>(const_cast<void*>(pointer));
  u64 const begin = reinterpret_cast<u64>(pointer) / page * page;
  u64 const end = reinterpret_cast<u64>(pointer) + size;
  if (msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) != 0) return false;
  if (drivers().empty()) return true;
  char bytes[2];
  iovec const here{bytes, sizeof bytes};
  iovec const there[] = {{first, 1}, {first + size - 1, 1}};
  auto const got = process_vm_readv(getpid(), &here, 1, there, 2, 0);
  return got == 2 || (got < 0 && errno != EFAULT);  // not allowed here: nothing is known
}

std::optional<MemoryRange> ask_drivers(void const* pointer) {
  auto const& kinds = drivers();
  if (kinds.empty()) return std::nullopt;
  if (auto const kept = foreign().find(pointer)) {
    if (backend(kept->device->kind()).memory_id(pointer) == kept->id) return kept;
    foreign().forget(kept->begin, kept->size);
  }
  for (auto* const kind : kinds)
    if (auto const found = kind->identify(pointer)) {
      if (found->id != 0) foreign().add(*found);
      return found;
    }
  return std::nullopt;
}

struct Asked {
  void const* pointer;
  u64 size;
  std::string_view operation, role;

  [[noreturn]] void refuse(std::string const& cause, std::string remedy) const {
    throw Error(Kind::bad_argument, std::string(operation),
                fmt::format("the {} at {}: {}", role, pointer, cause), std::move(remedy));
  }
};

Location inside(MemoryRange const& range, Asked const& asked) {
  u64 const left =
      range.size - static_cast<u64>(static_cast<char const*>(asked.pointer) - range.begin);
  if (asked.size > left)
    asked.refuse(fmt::format("{} bytes are named, but its allocation on {} ends after {}",
                             asked.size, range.device->name(), left),
                 "stay inside the allocation; register host memory as a whole or not at all");
  Location where{range.kind, range.device, true, false};
  bool const host_device = range.device->in_host_memory();
  where.on_host = host_device || range.kind != MemoryKind::device;
  where.page_locked = !host_device && range.kind == MemoryKind::pinned;
  return where;
}

}  // namespace

Location locate(void const* pointer, u64 size, std::string_view operation, std::string_view role) {
  Asked const asked{pointer, size, operation, role};
  if (!pointer)
    asked.refuse(fmt::format("{} bytes at a null pointer", size), "give memory, or 0 bytes");
  auto const own = memory_map().find(pointer);
  if (own && own->live) return inside(*own, asked);
  bool const freed = own.has_value();
  auto const refuse_freed = [&] {
    asked.refuse(fmt::format("it points into memory of {} that was freed", own->device->name()),
                 "keep the Allocation until the copy is done");
  };
  if (freed && own->device->in_host_memory()) refuse_freed();  // its addresses are out of use
  if (auto const found = ask_drivers(pointer)) {
    if (freed) memory_map().forget(own->begin, own->size);  // used again, by another owner
    return inside(*found, asked);
  }
  // Freed device memory stays mapped without access until its driver gives the addresses back. Then
  // the host may use them.
  if (size > ~u64{0} - reinterpret_cast<u64>(pointer) || !readable(pointer, size)) {
    if (freed) refuse_freed();
    asked.refuse(fmt::format("{} bytes are named, but not all of them are mapped: the "
                             "memory was freed, or never allocated, or ends earlier",
                             size),
                 "give memory that is allocated");
  }
  if (freed) memory_map().forget(own->begin, own->size);
  return {};
}

}  // namespace meshpost::copying
