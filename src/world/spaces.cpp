#include "meshpost/world/spaces.hpp"

#include <algorithm>

namespace meshpost {

Spaces::Spaces(Layout const& layout) : layout_(layout), by_device_(layout.device_count(), none) {
  std::vector<SpaceDevices> groups;
  std::vector<u32> domains;  // by group
  for (u32 own = 0; own < layout.own_count(); ++own) {
    u32 const number = layout.first_device + own;
    auto const known = std::ranges::find(domains, layout.domains[number]);
    auto const group = static_cast<u64>(known - domains.begin());
    if (known == domains.end()) {
      domains.push_back(layout.domains[number]);
      groups.emplace_back();
    }
    groups[group].own.push_back(layout.devices[own]);
    groups[group].numbers.push_back(number);
  }
  if (groups.empty()) groups.emplace_back();
  for (auto& group : groups) {
    group.count = layout.device_count();
    group.spaces = static_cast<u32>(groups.size());
    auto& kind = group.own.empty() ? host_backend() : backend(group.own.front()->kind());
    spaces_.push_back(kind.reserve(group));
  }
  for (u32 device = 0; device < layout.device_count(); ++device) {
    auto const known = std::ranges::find(domains, layout.domains[device]);
    if (known != domains.end()) by_device_[device] = static_cast<u32>(known - domains.begin());
    else if (domains.empty() && layout.traits[device].in_host_memory) by_device_[device] = 0;
  }
}

u64 Spaces::stride() const {
  u64 least = ~u64{0};
  for (auto const& space : spaces_) least = std::min<u64>(least, space->stride());
  return least;
}

u64 Spaces::granularity() const {
  u64 most = 1;
  for (auto const& space : spaces_) most = std::max<u64>(most, space->granularity());
  return most;
}

char* Spaces::at(u32 device, u64 offset) const {
  auto const& space = *spaces_[by_device_[device] == none ? 0 : by_device_[device]];
  return space.base() + device * space.stride() + offset;
}

void Spaces::extend(Bytes offset, Bytes size) {
  for (auto const& space : spaces_) space->extend(offset, size);
}

void Spaces::shrink(Bytes offset, Bytes size) noexcept {
  for (auto const& space : spaces_) space->shrink(offset, size);
}

int Spaces::share(u32 own, Bytes offset, Bytes size) {
  return of_own(own).share(layout_.first_device + own, offset, size);
}

void Spaces::adopt(u32 device, Bytes offset, Bytes size, int file) {
  if (by_device_[device] != none) spaces_[by_device_[device]]->adopt(device, offset, size, file);
}

}  // namespace meshpost
