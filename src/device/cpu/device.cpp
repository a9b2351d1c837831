#include "meshpost/device/device.hpp"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "base/cores.hpp"
#include "device/backends.hpp"
#include "device/cpu/address_space.hpp"
#include "device/cpu/memory.hpp"
#include "device/cpu/scheduler.hpp"
#include "device/cpu/stream.hpp"
#include "meshpost/device/block.hpp"

namespace meshpost {
namespace {

constexpr u32 ranks_a_core = 16;

std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "CPU";
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(u32 index) : index_(index) {
    u32 const cores = usable_cores();
    info_ = {processor_model(), cpu::total_memory(), cores, ranks_a_core * cores, 1, 1024, {}};
  }
  std::string_view kind() const override { return "cpu"; }
  u32 index() const override { return index_; }
  DeviceInfo const& info() const override { return info_; }
  bool in_host_memory() const override { return true; }

  Allocation allocate(Bytes size, MemoryKind kind) override {
    return cpu::allocate(*this, size, kind);
  }
  Bytes free_memory() override { return cpu::free_memory(); }
  std::unique_ptr<Stream> make_stream() override { return cpu::make_stream(); }
  std::unique_ptr<Stream> adopt_stream(void* /*native*/) override {
    throw Error(Kind::bad_argument, fmt::format("adopt_stream on {}", name()),
                "CPU devices have no streams of their own", "use Device::make_stream()");
  }
  PointerInfo locate(void const* pointer) override {
    return {MemoryKind::device, pointer != nullptr, ~u64{0}};
  }
  void do_read(void* host, void const* device, Bytes size) override { move(host, device, size); }
  // A word is stored whole, behind what this thread has stored before: somebody may poll it.
  void do_write(void* device, void const* host, Bytes size) override {
    if (size != sizeof(u32) || reinterpret_cast<u64>(device) % sizeof(u32) != 0)
      return move(device, host, size);
    u32 word = 0;
    std::memcpy(&word, host, sizeof word);
    memory::store(static_cast<u32*>(device), word, Order::system);
  }
  void do_fill(void* target, u8 value, Bytes size) override {
    if (size != 0) std::memset(target, value, size);
  }

 private:
  static void move(void* target, void const* source, Bytes size) {
    if (size != 0) std::memmove(target, source, size);  // memmove refuses null, even of nothing
  }

  u32 index_;
  DeviceInfo info_;
};

class CpuBackend : public Backend {
 public:
  std::string_view kind() const override { return "cpu"; }
  DeviceTraits traits() const override {
    return {.in_host_memory = true, .on_host_cores = true, .extra_polls = ExtraPolls::has_news};
  }
  u32 count() override { return ~0u; }
  std::shared_ptr<Device> open(u32 index) override {
    std::scoped_lock const lock(mutex_);
    auto& device = devices_[index];
    if (!device) device = std::make_shared<CpuDevice>(index);
    return device;
  }
  std::unique_ptr<AddressSpace> reserve(SpaceDevices const& devices) override {
    return cpu::reserve(devices);
  }
  std::unique_ptr<LaunchResources> launch_resources() override {
    return std::make_unique<cpu::CpuLaunchResources>();
  }
  std::unique_ptr<CooperativeLaunch> launch(LaunchSpec const& spec) override {
    if (!spec.image.cpu)
      throw Error(Kind::bad_argument, fmt::format("launch {}", spec.image.name),
                  "it was not compiled for CPU devices", "compile it with meshpost_add_executable");
    return std::make_unique<cpu::CpuLaunch>(spec);
  }
  void connect(std::vector<std::shared_ptr<Device>> const& /*devices*/) override {}

 private:
  std::mutex mutex_;
  std::map<u32, std::shared_ptr<Device>> devices_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace meshpost
