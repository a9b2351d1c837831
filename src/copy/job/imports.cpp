#include "copy/job/imports.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "copy/devices.hpp"

namespace meshpost::copying {
namespace {

Error refusal(std::string cause, std::string remedy) {
  return {Kind::bad_environment, "map another process's memory", std::move(cause),
          std::move(remedy)};
}

char* map_file(int file, u64 size) {
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

// One that copies here know: the same as the owner's, else any that may reach it.
std::shared_ptr<Device> device_for(Part const& part) {
  std::shared_ptr<Device> any;
  for (auto const& device : known_devices()) {
    if (device->kind() != part.allocation.kind) continue;
    if (!any || device->info().bus == part.bus) any = device;
  }
  if (!any)
    throw refusal(fmt::format("this process has no {} device", part.allocation.kind),
                  "name one in MESHPOST_DEVICES if it should map GPUs' memory");
  return any;
}

}  // namespace

Imports::~Imports() {
  for (auto const& [name, import] : all_) unmap(import);
}

void Imports::unmap(Import const& import) {
  if (import.kind) import.kind->drop_memory(import.begin);
  else munmap(import.begin, import.size);
}

char* Imports::map(u32 process, Part const& part, int file) {
  std::pair const name{process, part.allocation};
  auto found = all_.find(name);
  if (found == all_.end()) {
    Import import{nullptr, part.allocation_size, nullptr};
    if (part.allocation.kind == "file") {
      if (file < 0) throw refusal("its file was not passed along", "see earlier warnings");
      import.begin = map_file(file, import.size);
    } else {
      import.kind = &backend(part.allocation.kind);
      import.begin = static_cast<char*>(
          import.kind->adopt_memory(*device_for(part), part.handle, file, Bytes{import.size}));
    }
    found = all_.emplace(name, import).first;
  }
  auto const& import = found->second;
  if (part.offset > import.size || part.size > import.size - part.offset)
    throw refusal(fmt::format("{} bytes at offset {} of an allocation of {}", part.size,
                              part.offset, import.size),
                  "report it");
  return import.begin + part.offset;
}

void Imports::drop(u32 process, AllocationName const& name) {
  auto const import = all_.extract({process, name});
  if (!import.empty()) unmap(import.mapped());
}

}  // namespace meshpost::copying
