#include "uplinks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "common/files.hpp"

namespace topo {

using namespace meshpost;
using apps::line_of;

namespace {

// "0000:17:00.0", not "pci0000:15": that is the host's end, which is no link.
bool is_address(std::string const& name) {
  return name.size() >= 12 && name.find(':') != std::string::npos && name[name.size() - 2] == '.' &&
         std::string("0123456789abcdefABCDEF").find(name[0]) != std::string::npos;
}

std::string link_of(std::filesystem::path const& bridge) {
  auto const speed = line_of(bridge / "current_link_speed");
  auto const width = line_of(bridge / "current_link_width");
  return speed.empty() || width.empty() ? "" : speed + " x" + width;
}

// The folder of each bridge between a device and the host, from the host on.
std::vector<std::filesystem::path> bridges_of(Device const& device,
                                              std::filesystem::path const& buses) {
  std::vector<std::filesystem::path> bridges;
  if (device.info().bus.empty()) return bridges;
  std::error_code error;
  auto const own = std::filesystem::canonical(buses / device.info().bus, error);
  if (error) return bridges;  // a container may hide it
  for (auto at = own.parent_path(); is_address(at.filename()); at = at.parent_path())
    bridges.insert(bridges.begin(), at);
  return bridges;
}

}  // namespace

std::vector<Uplink> shared_uplinks(Devices const& devices, std::filesystem::path const& buses) {
  std::map<std::filesystem::path, Devices> behind;
  for (auto const& device : physical_devices(devices))
    for (auto const& bridge : bridges_of(*device, buses)) behind[bridge].push_back(device);
  std::vector<Uplink> uplinks;
  for (auto const& [bridge, all] : behind) {
    if (all.size() < 2) continue;
    // Bridges in a row with the same devices behind them are one way. The last one is the switch.
    bool const nearer = std::ranges::any_of(behind, [&](auto const& other) {
      return other.first != bridge && other.first.string().starts_with(bridge.string() + "/") &&
             other.second == all;
    });
    if (!nearer) uplinks.push_back({bridge.filename(), link_of(bridge), all});
  }
  std::ranges::sort(uplinks, {}, &Uplink::bridge);
  return uplinks;
}

double rate_at_once(Devices const& devices, bool into, Bytes size) {
  struct Way {
    Allocation host, own;
    std::unique_ptr<Stream> stream;
  };
  std::vector<Way> ways;
  for (auto const& device : devices)
    ways.push_back({device->allocate(size, MemoryKind::pinned),
                    device->allocate(size, MemoryKind::device), device->make_stream()});
  std::vector<double> times;
  for (u32 i = 0; i < 4; ++i) {
    auto const begin = std::chrono::steady_clock::now();
    for (auto const& way : ways)
      way.stream->copy(into ? way.own.data() : way.host.data(),
                       into ? way.host.data() : way.own.data(), size);
    for (auto const& way : ways) way.stream->synchronize();
    std::chrono::duration<double> const time = std::chrono::steady_clock::now() - begin;
    if (i > 0) times.push_back(time.count());  // the first one touches the pages
  }
  std::ranges::sort(times);
  return static_cast<double>(size.value * devices.size()) / times[times.size() / 2];
}

void print_uplinks(std::vector<Uplink> const& uplinks, bool measured) {
  constexpr Bytes size{u64{64} << 20};
  for (auto const& uplink : uplinks) {
    std::string names;
    for (auto const& device : uplink.devices) names += (names.empty() ? "" : ", ") + device->name();
    std::printf("\nshared uplink %s%s: %s\n", uplink.bridge.c_str(),
                (uplink.link.empty() ? "" : " (" + uplink.link + ")").c_str(), names.c_str());
    if (!measured) continue;
    for (bool const into : {true, false}) {
      double alone = 0;
      for (auto const& device : uplink.devices) alone += rate_at_once({device}, into, size);
      double const together = rate_at_once(uplink.devices, into, size);
      std::printf("  %s pinned memory: %.1f GB/s at once, %.1f GB/s in sum one by one\n",
                  into ? "from" : "to", together * 1e-9, alone * 1e-9);
    }
  }
}

}  // namespace topo
