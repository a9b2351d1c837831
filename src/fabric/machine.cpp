#include "meshpost/fabric/machine.hpp"

namespace meshpost {

std::optional<u32> Machine::find(Place const& place) const {
  for (u32 i = 0; i < places.size(); ++i)
    if (places[i].place == place) return i;
  return std::nullopt;
}

Link const* Machine::link(u32 from, u32 to) const {
  Link const* best = nullptr;
  for (auto const& one : links)
    if (one.from == from && one.to == to && (!best || one.rate > best->rate)) best = &one;
  return best;
}

std::string_view to_string(Mover mover) {
  switch (mover) {
    case Mover::host_threads: return "host_threads";
    case Mover::copy_engine: return "copy_engine";
    case Mover::through_host: break;
  }
  return "through_host";
}

std::string_view to_string(HostWay way) {
  static constexpr std::array<std::string_view, host_ways> names = {
      "memcpy_one", "memcpy_shares", "memcpy_slices", "stream_one", "stream_slices"};
  return names.at(static_cast<u32>(way));
}

}  // namespace meshpost
