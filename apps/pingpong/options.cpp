#include "options.hpp"

#include <meshpost/device/device.hpp>

#include <algorithm>

namespace pingpong {

using namespace meshpost;

bool Options::has(Mode mode) const { return std::ranges::find(modes, name(mode)) != modes.end(); }

std::vector<u64> fine_sizes() {
  std::vector<u64> sizes{1};
  for (u64 size = 2; size <= u64{4} << 20; size *= 2) {
    sizes.push_back(size);
    if (size < u64{4} << 20) sizes.push_back(size / 2 * 3);
  }
  return sizes;
}

std::string devices_of(Options const& options) {
  if (!options.devices.empty()) return options.devices;
  auto const all = open_devices("");
  if (all.front()->kind() != "cuda") return "cpu:2";
  if (all.size() == 1) return "cuda:0*2";
  return options.halo() ? "cuda" : "cuda:0,1";
}

}  // namespace pingpong
