#include "world/memory_files.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "device/cpu/address_space.hpp"
#include "meshpost/base/error.hpp"
#include "meshpost/device/memory_map.hpp"

namespace meshpost {

MemoryFiles& memory_files() {
  static auto* const one = new MemoryFiles;  // memory may be freed after main
  return *one;
}

Allocation MemoryFiles::allocate(Bytes size, Device* device) {
  auto const refuse = [&](char const* call) {
    throw Error(Kind::out_of_memory, "allocate memory to share",
                fmt::format("{} bytes: {}: {}", size.value, call, std::strerror(errno)),
                "use less; the limits are those of memory, addresses and open files (ulimit -a)");
  };
  u64 const bytes = std::max<u64>(size, 1);
  // Linux grants more memory than it has, and kills processes that touch it.
  if (u64 const available = cpu::available_memory(); bytes > available)
    throw Error(Kind::out_of_memory, "allocate memory to share",
                fmt::format("{} bytes were asked for, {} are free", size.value, available),
                "use less");
  Descriptor file(memfd_create("meshpost", MFD_CLOEXEC));
  if (!file) refuse("memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) refuse("ftruncate");
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) refuse("mmap");
  auto* const begin = static_cast<char*>(at);
  if (device) memory_map().add({begin, bytes, MemoryKind::device, device, true, 0});
  std::scoped_lock const lock(mutex_);
  files_[begin] = {++last_, bytes, std::move(file)};
  return {begin, size, [this](void* memory) { free(static_cast<char*>(memory)); }};
}

void MemoryFiles::free(char* begin) {
  u64 id = 0, size = 0;
  {
    std::scoped_lock const lock(mutex_);
    auto const& file = files_.at(begin);
    id = file.id;
    size = file.size;
  }
  {
    std::shared_lock const lock(watching_);
    for (auto const* const watch : watches_) watch->freed_(id, begin, size);
  }
  std::scoped_lock const lock(mutex_);
  // Other processes may still have it mapped, and ranks of a job that has lost a process may store
  // there. So its pages stay until those processes unmap it.
  files_.erase(begin);
  memory_map().forget(begin, size);  // the addresses may soon be used for something else
  munmap(begin, size);
}

std::optional<MemoryFiles::Found> MemoryFiles::find(void const* pointer) const {
  auto const* const at = static_cast<char const*>(pointer);
  std::scoped_lock const lock(mutex_);
  auto const next = files_.upper_bound(at);
  if (next == files_.begin()) return std::nullopt;
  auto const& [begin, file] = *std::prev(next);
  if (at >= begin + file.size) return std::nullopt;
  auto copy = Descriptor::copy_of(file.file.get());
  if (!copy)
    throw Error(Kind::bad_environment, "share memory with other processes", std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
  return Found{file.id, begin, file.size, std::move(copy)};
}

MemoryFiles::Watch::Watch(Freed freed) : freed_(std::move(freed)) {
  auto& files = memory_files();
  std::unique_lock const lock(files.watching_);
  files.watches_.push_back(this);
}

MemoryFiles::Watch::~Watch() {
  auto& files = memory_files();
  std::unique_lock const lock(files.watching_);
  files.watches_.remove(this);
}

}  // namespace meshpost
