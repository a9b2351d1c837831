#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "copy/measured.hpp"

namespace meshpost {
namespace copying {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::pair<std::string, u32>, double> rates;  // by route and power of two
};
Table& table() {
  static auto* const one = new Table;  // copies may end after main
  return *one;
}
std::pair<std::string, u32> key_of(std::string const& route, u64 bytes) {
  return {route, static_cast<u32>(std::bit_width(bytes))};
}

}  // namespace

std::string describe(Machine const& machine, Route const& route) {
  std::string text;
  for (auto const& chain : route.chains) {
    if (!text.empty()) text += " | ";
    for (u64 i = 0; i < chain.links.size(); ++i) {
      auto const& link = machine.links.at(chain.links[i]);
      if (i == 0) text += machine.places.at(link.from).place.name();
      text += link.mover == Mover::through_host ? " >> " : " > ";
      text += machine.places.at(link.to).place.name();
    }
  }
  return text;
}

void remember(std::string const& route, u64 bytes, double seconds) {
  if (!(seconds > 0)) return;
  std::scoped_lock const lock(table().mutex);
  table().rates[key_of(route, bytes)] = double(bytes) / seconds;
}

std::optional<double> remembered(std::string const& route, u64 bytes) {
  std::scoped_lock const lock(table().mutex);
  auto const found = table().rates.find(key_of(route, bytes));
  if (found == table().rates.end()) return std::nullopt;
  return found->second;
}

}  // namespace copying

std::string explain(Machine const& machine, Place const& source, Place const& target, Bytes size) {
  auto text = fmt::format("{} bytes from {} to {}\n{:>10} {:>10}  {:24} {}\n", size.value,
                          source.name(), target.name(), "predicted", "measured", "", "route");
  for (auto const& [route, verdict] : candidates(machine, source, target, size)) {
    auto const name = copying::describe(machine, route);
    auto const measured = copying::remembered(name, size);
    text += fmt::format("{:>10.1f} {:>10}  {:24} {}\n",
                        double(size.value) / std::max(route.predicted, 1e-12) / 1e9,
                        measured ? fmt::format("{:.1f}", *measured / 1e9) : "-", verdict, name);
  }
  return text + "GB/s; a > b: by an engine or threads, a >> b: through the driver's own buffers\n";
}

}  // namespace meshpost
