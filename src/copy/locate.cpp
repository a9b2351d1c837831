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

// What drivers said, by address. Like the library's own map, but each hit is checked by its number.
MemoryMap& foreign() {
  static auto* const one = new MemoryMap;
  return *one;
}

// An address range is mapped if msync(MS_ASYNC), which does nothing else on Linux, finds no hole in
// it. Its time depends on the number of mappings, not of pages.
bool mapped(void const* pointer, u64 size) {
  static u64 const page = static_cast<u64>(sysconf(_SC_PAGESIZE));
  u64 const begin = reinterpret_cast<u64>(pointer) / page * page;
  u64 const end = reinterpret_cast<u64>(pointer) + size;
  return msync(reinterpret_cast<void*>(begin), end - begin, MS_ASYNC) == 0;
}

// Drivers keep the addresses of freed memory mapped, but nobody may read there. The kernel reads the
// first and the last byte and says so instead of ending the process.
bool readable(void const* pointer, u64 size) {
  char bytes[2];
  iovec const here{bytes, sizeof bytes};
  auto* const first = static_cast<char*>(const_cast<void*>(pointer));
  iovec const there[2] = {{first, 1}, {first + size - 1, 1}};
  auto const read = process_vm_readv(getpid(), &here, 1, there, 2, 0);
  return read == 2 || (read < 0 && errno != EFAULT);  // a sandbox may forbid the question
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
    asked.refuse(fmt::format("{} bytes are named, its allocation on {} ends after {}", asked.size,
                             range.device->name(), left),
                 "stay inside the allocation");
  Location where{range.kind, range.device, true, false};
  bool const host_device = in_host_memory(*range.device);
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
  if (freed && in_host_memory(*own->device)) refuse_freed();  // its addresses are kept out of use
  if (auto const found = ask_drivers(pointer)) {
    if (freed) memory_map().forget(own->begin, own->size);  // used again, by somebody else
    return inside(*found, asked);
  }
  if (size > ~u64{0} - reinterpret_cast<u64>(pointer) || !mapped(pointer, size) ||
      !readable(pointer, size)) {
    if (freed) refuse_freed();
    asked.refuse(fmt::format("{} bytes are named, not all of them are mapped: it was freed, or "
                             "never allocated, or ends earlier",
                             size),
                 "give memory that is there");
  }
  if (freed) memory_map().forget(own->begin, own->size);
  return {};
}

}  // namespace meshpost::copying
