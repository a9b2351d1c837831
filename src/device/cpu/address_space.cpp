#include "device/cpu/address_space.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "meshpost/device/memory_map.hpp"

namespace meshpost::cpu {
namespace {

Bytes meminfo(std::string const& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file;) {
    u64 kilobytes = 0;
    file >> name >> kilobytes >> unit;
    if (name == key) return Bytes{kilobytes * 1024};
  }
  return Bytes{~u64{0} >> 1};
}

Error no_memory(std::string cause) {
  return {Kind::out_of_memory, "memory of the CPU devices", std::move(cause),
          "use smaller windows or fewer devices"};
}

class MemoryFiles : public AddressSpace {
 public:
  explicit MemoryFiles(std::vector<std::shared_ptr<Device>> const& owners)
      : stride_(std::bit_ceil(total_memory().value)), owners_(owners), files_(owners.size(), -1) {
    u64 const devices = owners.size();
    void* const range = mmap(nullptr, stride_ * devices, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
      throw no_memory(fmt::format("{} devices times {} bytes of addresses are not to be had: {}",
                                  devices, stride_, std::strerror(errno)));
    base_ = static_cast<char*>(range);
    for (int& file : files_) {
      file = memfd_create("meshpost", MFD_CLOEXEC);
      if (file < 0) throw no_memory(fmt::format("memfd_create: {}", std::strerror(errno)));
    }
  }
  ~MemoryFiles() override {
    memory_map().forget(base_, stride_ * files_.size());
    munmap(base_, stride_ * files_.size());
    for (int const file : files_) close(file);
  }
  MemoryFiles(MemoryFiles const&) = delete;
  MemoryFiles& operator=(MemoryFiles const&) = delete;

  char* base() const override { return base_; }
  Bytes stride() const override { return Bytes{stride_}; }
  Bytes granularity() const override { return Bytes{static_cast<u64>(sysconf(_SC_PAGESIZE))}; }

  void extend(Bytes offset, Bytes size) override {
    u64 const devices = files_.size();
    // Linux hands out more than it has and kills whoever touches it, so ask first.
    u64 const available = available_memory();
    if (size > stride_ || offset > stride_ - size || size > available / devices)
      throw no_memory(fmt::format(
          "{} bytes on each of {} devices were asked for, {} bytes are free on this host",
          size.value, devices, available));
    for (u64 device = 0; device < devices; ++device) {
      if (ftruncate(files_[device], static_cast<off_t>(offset + size)) != 0)
        throw no_memory(
            fmt::format("growing to {} bytes: {}", offset + size, std::strerror(errno)));
      void* const at = base_ + device * stride_ + offset;
      if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, files_[device],
               static_cast<off_t>(offset.value)) == MAP_FAILED)
        throw no_memory(fmt::format("mapping {} bytes: {}", size.value, std::strerror(errno)));
      memory_map().add({static_cast<char*>(at), size, MemoryKind::device, owners_[device].get()},
                       MemoryMap::Neighbours::join);
    }
  }

 private:
  u64 stride_;
  char* base_ = nullptr;
  std::vector<std::shared_ptr<Device>> owners_;
  std::vector<int> files_;
};

}  // namespace

Bytes available_memory() { return meminfo("MemAvailable:"); }
Bytes total_memory() { return meminfo("MemTotal:"); }

std::unique_ptr<AddressSpace> reserve(std::vector<std::shared_ptr<Device>> const& devices) {
  return std::make_unique<MemoryFiles>(devices);
}

}  // namespace meshpost::cpu
