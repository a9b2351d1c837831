#include "device/logical.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace meshpost {
namespace {

// The whole device does all that needs the hardware. Its messages name the whole, because the
// whole's memory is used up.
class LogicalDevice : public Device {
 public:
  LogicalDevice(std::shared_ptr<Device> whole, u32 part, u32 parts)
      : whole_(std::move(whole)), part_(part), info_(whole_->info()) {
    // CPU devices share the cores anyway: make_layout divides by the number of all.
    if (!whole_->in_host_memory()) info_.default_ranks = std::max(1u, info_.default_ranks / parts);
  }
  std::string_view kind() const override { return whole_->kind(); }
  u32 index() const override { return whole_->index(); }
  std::string name() const override { return fmt::format("{}.{}", whole_->name(), part_); }
  std::shared_ptr<Device> whole() const override { return whole_; }
  DeviceInfo const& info() const override { return info_; }
  bool in_host_memory() const override { return whole_->in_host_memory(); }

  Allocation allocate(Bytes size, MemoryKind kind) override { return whole_->allocate(size, kind); }
  Bytes free_memory() override { return whole_->free_memory(); }
  std::unique_ptr<Stream> make_stream() override { return whole_->make_stream(); }
  std::unique_ptr<Stream> make_urgent_stream() override { return whole_->make_urgent_stream(); }
  std::unique_ptr<Stream> adopt_stream(void* native) override {
    return whole_->adopt_stream(native);
  }
  PointerInfo locate(void const* pointer) override { return whole_->locate(pointer); }
  void do_read(void* host, void const* device, Bytes size) override {
    whole_->read(host, device, size);
  }
  void do_write(void* device, void const* host, Bytes size) override {
    whole_->write(device, host, size);
  }
  void do_fill(void* target, u8 value, Bytes size) override { whole_->fill(target, value, size); }
  void raise(u32* counter, u32 value, u32* origin_word, u32 origin) override {
    whole_->raise(counter, value, origin_word, origin);
  }
  void see_writes() override { whole_->see_writes(); }

 private:
  std::shared_ptr<Device> whole_;
  u32 part_;
  DeviceInfo info_;
};

}  // namespace

std::vector<std::shared_ptr<Device>> split_device(std::shared_ptr<Device> const& whole, u32 parts) {
  std::vector<std::shared_ptr<Device>> devices;
  devices.reserve(parts);
  for (u32 part = 0; part < parts; ++part)
    devices.push_back(std::make_shared<LogicalDevice>(whole, part, parts));
  return devices;
}

std::shared_ptr<Device> physical(std::shared_ptr<Device> const& device) {
  auto whole = device->whole();
  return whole ? whole : device;
}

std::vector<std::shared_ptr<Device>> physical_devices(
    std::vector<std::shared_ptr<Device>> const& devices) {
  std::vector<std::shared_ptr<Device>> found;
  for (auto const& device : devices)
    if (auto one = physical(device); std::ranges::find(found, one) == found.end())
      found.push_back(std::move(one));
  return found;
}

std::vector<SharedGrids> by_physical_device(std::vector<LaunchGrid> const& grids) {
  std::vector<SharedGrids> shared;
  for (auto const& grid : grids) {
    auto device = physical(grid.device);
    if (shared.empty() || shared.back().device != device)
      shared.push_back({std::move(device), &grid, 0, 0});
    ++shared.back().count;
    shared.back().ranks += grid.ranks;
  }
  return shared;
}

}  // namespace meshpost
