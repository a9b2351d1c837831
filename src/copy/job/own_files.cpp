#include "copy/job/own_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "meshpost/base/error.hpp"
#include "meshpost/device/memory_map.hpp"

namespace meshpost::copying {

Allocation OwnFiles::allocate(Bytes size, Device* device) {
  auto const refuse = [&](char const* call) {
    throw Error(Kind::out_of_memory, fmt::format("allocate {} bytes to share", size.value),
                fmt::format("{}: {}", call, std::strerror(errno)),
                "use less; the limits are those of memory, addresses and open files (ulimit -a)");
  };
  u64 const bytes = std::max<u64>(size, 1);
  Descriptor file(memfd_create("meshpost", MFD_CLOEXEC));
  if (!file) refuse("memfd_create");
  if (bytes > u64{1} << 62 || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    refuse("ftruncate");
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) refuse("mmap");
  auto* const begin = static_cast<char*>(at);
  if (device) memory_map().add({begin, bytes, MemoryKind::device, device, true, 0});
  std::scoped_lock const lock(mutex_);
  files_[begin] = {++last_, bytes, std::move(file)};
  return {begin, size,
          [self = shared_from_this()](void* memory) { self->free(static_cast<char*>(memory)); }};
}

void OwnFiles::free(char* begin) {
  u64 size = 0;
  {
    std::scoped_lock const lock(mutex_);
    size = files_.at(begin).size;
  }
  before_free_(begin, size);
  std::scoped_lock const lock(mutex_);
  auto file = files_.extract(begin);
  freed_.push_back({"file", file.mapped().id});
  // Others may still have it mapped, but copy no more: its pages are given back now.
  if (ftruncate(file.mapped().file.get(), 0) != 0) errno = 0;  // then later, when they unmap it
  memory_map().forget(begin, size);  // the addresses may soon be something else's
  munmap(begin, size);
}

std::optional<OwnFiles::Found> OwnFiles::find(void const* pointer) const {
  auto const* const at = static_cast<char const*>(pointer);
  std::scoped_lock const lock(mutex_);
  auto const next = files_.upper_bound(at);
  if (next == files_.begin()) return std::nullopt;
  auto const& [begin, file] = *std::prev(next);
  if (at >= begin + file.size) return std::nullopt;
  return Found{file.id, begin, file.size, Descriptor(fcntl(file.file.get(), F_DUPFD_CLOEXEC, 0))};
}

std::vector<AllocationName> OwnFiles::take_freed() {
  std::scoped_lock const lock(mutex_);
  return std::exchange(freed_, {});
}

}  // namespace meshpost::copying
