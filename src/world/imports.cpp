#include "world/imports.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace meshpost {
namespace {

Error refusal(std::string cause, std::string remedy) {
  return {Kind::bad_environment, "map another process's memory", std::move(cause),
          std::move(remedy)};
}

char* map_file(int file, u64 size) {
  if (file < 0) throw refusal("its file was not passed along", "see earlier warnings");
  struct stat found{};
  // Touching pages beyond a file's end would end this process.
  if (fstat(file, &found) != 0 || static_cast<u64>(found.st_size) < size)
    throw refusal(fmt::format("its file is of {} bytes, not {}", found.st_size, size),
                  "was it freed while it was being exposed?");
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED)
    throw refusal(fmt::format("{} bytes: {}", size, std::strerror(errno)),
                  "raise the limit of addresses (ulimit -v)");
  return static_cast<char*>(at);
}

}  // namespace

Imports::~Imports() {
  for (auto const& [name, import] : all_) unmap(import);
}

void Imports::unmap(Import const& import) {
  if (import.kind) import.kind->drop_memory(import.begin);
  else munmap(import.begin, import.size);
}

char* Imports::map(u32 process, Mappable const& allocation, u64 offset, u64 size, Device* device,
                   int file) {
  bool const is_file = allocation.name.kind == "file";
  if (!is_file && !device)
    throw refusal(fmt::format("this process has no {} device", allocation.name.kind),
                  "name one in MESHPOST_DEVICES if it should map GPUs' memory");
  std::tuple const name{process, allocation.name, is_file ? nullptr : device};
  auto found = all_.find(name);
  if (found == all_.end()) {
    Import import{nullptr, allocation.size, nullptr};
    if (is_file) {
      import.begin = map_file(file, import.size);
    } else {
      import.kind = &backend(allocation.name.kind);
      import.begin = static_cast<char*>(
          import.kind->adopt_memory(*device, allocation.handle, file, Bytes{import.size}));
    }
    found = all_.emplace(name, import).first;
  }
  auto const& import = found->second;
  if (offset > import.size || size > import.size - offset)
    throw refusal(
        fmt::format("{} bytes at offset {} of an allocation of {}", size, offset, import.size),
        "report it");
  return import.begin + offset;
}

void Imports::drop(u32 process, AllocationName const& name) {
  std::erase_if(all_, [&](auto const& one) {
    auto const& [owner, allocation, device] = one.first;
    if (owner != process || allocation != name) return false;
    unmap(one.second);
    return true;
  });
}

}  // namespace meshpost
