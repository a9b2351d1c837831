#include "device/cpu/address_space.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/host_hooks.hpp"
#include "meshpost/device/memory_map.hpp"

namespace meshpost::cpu {
namespace {

Bytes meminfo(std::string const& key) {
  errno = 0;
  std::ifstream file("/proc/meminfo");
  if (errno == EMFILE)
    throw Error(Kind::bad_environment, "read /proc/meminfo", std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
  for (std::string name, unit; file;) {
    u64 kilobytes = 0;
    file >> name >> kilobytes >> unit;
    if (name == key) return Bytes{kilobytes * 1024};
  }
  return Bytes{~u64{0} >> 1};
}

Error no_memory(std::string cause, std::string remedy = "use smaller windows or fewer devices") {
  return {Kind::out_of_memory, "memory of the CPU devices", std::move(cause), std::move(remedy)};
}

// These cost no memory, and depend on no window.
std::string remedy_for_addresses() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "use fewer devices";
  return fmt::format(
      "raise the limit of addresses (ulimit -v), which is {} KiB, or use fewer devices",
      limit.rlim_cur / 1024);
}

// As much as the host has, unless many devices in many ranges would use up the addresses.
u64 stride_for(SpaceDevices const& devices) {
  u64 const all = std::bit_ceil(total_memory().value);
  if (devices.spaces == 1) return all;
  constexpr u64 addresses = u64{1} << 40;  // for all ranges: sanitizers leave little more
  return std::min(all, std::bit_floor(addresses / devices.spaces / devices.count));
}

class MemoryFiles : public AddressSpace {
 public:
  explicit MemoryFiles(SpaceDevices devices)
      : stride_(stride_for(devices)),
        devices_(std::move(devices)),
        files_(devices_.own.size(), -1) {
    void* const range = mmap(nullptr, stride_ * devices_.count, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
      throw no_memory(fmt::format("{} devices times {} bytes of addresses can't be reserved: {}",
                                  devices_.count, stride_, std::strerror(errno)),
                      remedy_for_addresses());
    base_ = static_cast<char*>(range);
    for (int& file : files_) {
      file = memfd_create("meshpost", MFD_CLOEXEC);
      if (file < 0)
        throw no_memory(fmt::format("memfd_create: {}", std::strerror(errno)),
                        "raise the limit of open files (ulimit -n), or use fewer devices");
    }
  }
  ~MemoryFiles() override {
    memory_map().forget(base_, stride_ * devices_.count);
    munmap(base_, stride_ * devices_.count);
    for (int const file : files_) close(file);
  }
  MemoryFiles(MemoryFiles const&) = delete;
  MemoryFiles& operator=(MemoryFiles const&) = delete;

  char* base() const override { return base_; }
  Bytes stride() const override { return Bytes{stride_}; }
  Bytes granularity() const override { return Bytes{static_cast<u64>(sysconf(_SC_PAGESIZE))}; }

  void extend(Bytes offset, Bytes size) override {
    // Linux hands out more memory than it has, and kills a process that touches too much. So ask
    // first. All processes of the node ask at the same time.
    u64 const available = available_memory();
    if (size > stride_ || offset > stride_ - size || size > available / devices_.count)
      throw no_memory(fmt::format(
          "{} bytes on each of {} devices were asked for, {} bytes are free on this host",
          size.value, devices_.count, available));
    for (u32 own = 0; own < files_.size(); ++own) {
      hooks::at("grow a device's memory");
      if (ftruncate(files_[own], static_cast<off_t>(offset + size)) != 0)
        throw no_memory(
            fmt::format("growing to {} bytes: {}", offset + size, std::strerror(errno)));
      auto* const at = map(devices_.numbers[own], offset, size, files_[own]);
      memory_map().add({at, size, MemoryKind::device, physical(devices_.own[own]).get()},
                       MemoryMap::Neighbours::join);
    }
  }
  void shrink(Bytes offset, Bytes size) noexcept override {
    for (u32 device = 0; device < devices_.count; ++device) {
      char* const at = base_ + device * stride_ + offset;
      memory_map().forget(at, size);
      [[maybe_unused]] void* const unmapped =
          mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    // Gives the pages back. A file that has not grown stays as it is.
    for (int const file : files_)
      if (struct stat status{}; fstat(file, &status) == 0 && status.st_size > signed_size(offset))
          [[maybe_unused]]
        int const shrunk = ftruncate(file, signed_size(offset));
  }
  int share(u32 device, Bytes /*offset*/, Bytes /*size*/) override {
    auto const own = std::ranges::find(devices_.numbers, device) - devices_.numbers.begin();
    int const file = fcntl(files_[static_cast<u64>(own)], F_DUPFD_CLOEXEC, 0);
    if (file < 0)
      throw Error(Kind::bad_environment, "share memory with other processes", std::strerror(errno),
                  "raise the limit of open files (ulimit -n)");
    return file;
  }
  void adopt(u32 device, Bytes offset, Bytes size, int file) override {
    map(device, offset, size, file);
  }

 private:
  static off_t signed_size(Bytes size) { return static_cast<off_t>(size.value); }
  char* map(u32 device, Bytes offset, Bytes size, int file) {
    void* const at = base_ + device * stride_ + offset;
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
             static_cast<off_t>(offset.value)) == MAP_FAILED)
      throw no_memory(fmt::format("mapping {} bytes: {}", size.value, std::strerror(errno)));
    return static_cast<char*>(at);
  }

  u64 stride_;
  char* base_ = nullptr;
  SpaceDevices devices_;
  std::vector<int> files_;  // of own devices
};

}  // namespace

Bytes available_memory() { return meminfo("MemAvailable:"); }
Bytes free_memory() {
  u64 const free = available_memory();
  auto const number_in = [](char const* file) -> std::optional<u64> {  // "max": no limit
    std::ifstream in(file);
    u64 value = 0;
    if (in >> value) return value;
    return std::nullopt;
  };
  auto const most = number_in("/sys/fs/cgroup/memory.max");
  if (!most) return {free};
  u64 const used = number_in("/sys/fs/cgroup/memory.current").value_or(0);
  return {std::min(free, *most - std::min(*most, used))};
}
Bytes total_memory() { return meminfo("MemTotal:"); }

std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) {
  return std::make_unique<MemoryFiles>(devices);
}

}  // namespace meshpost::cpu
