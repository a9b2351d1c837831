#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "fabric/topology.hpp"

// NVML's functions, declared here after its reference. The library comes with the driver, and its
// header with the toolkit. A program must also start if there is neither.

namespace meshpost::fabric {
namespace {

constexpr int success = 0;
constexpr unsigned most_links = 36;  // asking for more than a GPU has is an error: the count ends
constexpr unsigned remote_is_switch = 2;  // nvmlIntNvLinkDeviceType_t

struct PciInfo {  // nvmlPciInfo_t
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
using Handle = void*;

struct Nvml {
  int (*init)();
  int (*driver_version)(char*, unsigned);
  int (*by_bus)(char const*, Handle*);
  int (*pcie_generation)(Handle, unsigned*);
  int (*pcie_width)(Handle, unsigned*);
  int (*link_state)(Handle, unsigned, unsigned*);
  int (*link_remote)(Handle, unsigned, PciInfo*);
  int (*link_remote_type)(Handle, unsigned, unsigned*);
  bool usable = false;
};

template <class Function>
bool find(void* library, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

Nvml load() {
  Nvml nvml{};
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nvml;
  nvml.usable = find(library, "nvmlInit_v2", nvml.init) &&
                find(library, "nvmlSystemGetDriverVersion", nvml.driver_version) &&
                find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus) &&
                find(library, "nvmlDeviceGetMaxPcieLinkGeneration", nvml.pcie_generation) &&
                find(library, "nvmlDeviceGetMaxPcieLinkWidth", nvml.pcie_width) &&
                find(library, "nvmlDeviceGetNvLinkState", nvml.link_state) &&
                find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_remote) &&
                nvml.init() == success;
  // Only newer drivers have this function.
  if (!find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_remote_type))
    nvml.link_remote_type = nullptr;
  return nvml;
}

// Never unloaded: several threads may call NVML's functions at once.
Nvml const& nvml() {
  static Nvml const one = load();
  return one;
}

std::optional<Handle> handle_of(std::string const& bus) {
  Handle handle = nullptr;
  if (bus.empty() || !nvml().usable || nvml().by_bus(bus.c_str(), &handle) != success)
    return std::nullopt;
  return handle;
}

// NVML writes domains with eight digits, CUDA and the kernel with four.
bool same_bus(std::string_view one, std::string_view other) {
  auto const from_end = [](std::string_view text) { return text.substr(text.find(':') + 1); };
  auto const lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(from_end(one), from_end(other), {}, lower, lower) &&
         std::strtoul(std::string(one).c_str(), nullptr, 16) ==
             std::strtoul(std::string(other).c_str(), nullptr, 16);
}

}  // namespace

std::string pcie_name(std::string const& bus) {
  auto const handle = handle_of(bus);
  unsigned generation = 0, width = 0;
  if (!handle || nvml().pcie_generation(*handle, &generation) != success ||
      nvml().pcie_width(*handle, &width) != success)
    return "PCIe";
  return "PCIe " + std::to_string(generation) + ".0 x" + std::to_string(width);
}

std::string nvlink_name(std::string const& bus, std::string const& peer) {
  auto const handle = handle_of(bus);
  if (!handle || !handle_of(peer)) return "";
  u32 direct = 0, switched = 0;
  for (unsigned link = 0; link < most_links; ++link) {
    unsigned active = 0;
    if (nvml().link_state(*handle, link, &active) != success) break;
    if (active != 1) continue;
    PciInfo remote{};
    if (nvml().link_remote(*handle, link, &remote) == success && same_bus(remote.bus_id, peer))
      ++direct;
    unsigned type = 0;
    if (nvml().link_remote_type && nvml().link_remote_type(*handle, link, &type) == success &&
        type == remote_is_switch)
      ++switched;
  }
  u32 const links = direct != 0 ? direct : switched;
  return links == 0 ? "" : "NVLink " + std::to_string(links);
}

std::string driver_version() {
  std::array<char, 96> text{};
  if (!nvml().usable || nvml().driver_version(text.data(), text.size()) != success) return "";
  return text.data();
}

}  // namespace meshpost::fabric
