#include "distances.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/gather.hpp"
#include "meshpost/fabric/machine.hpp"

namespace meshpost::gemm {
namespace {

// A device of any process, in this process's machine. Numbers may differ between processes, buses
// don't.
PlaceInfo const* find(Machine const& machine, std::string const& bus) {
  for (auto const& place : machine.places)
    if (!bus.empty() && place.bus == bus) return &place;
  return nullptr;
}

LinkFrom link_from(Machine const& machine, Site const& owner, Site const& device) {
  LinkFrom link;
  link.same_host = owner.host == device.host;
  auto const* const source = link.same_host ? find(machine, owner.bus) : nullptr;
  auto const* const target = find(machine, device.bus);
  if (!source || !target) return link;
  link.same_numa_node = source->numa_node == target->numa_node;
  auto const* const found = machine.link(static_cast<u32>(source - machine.places.data()),
                                         static_cast<u32>(target - machine.places.data()));
  if (found) link.rate = found->rate;
  return link;
}

}  // namespace

std::vector<u32> distances_from(std::vector<LinkFrom> const& links) {
  std::vector<double> rates;
  for (auto const& link : links)
    if (!link.same_memory && link.rate > 0) rates.push_back(link.rate);
  std::ranges::sort(rates, std::greater{});
  std::vector<double> classes;  // the fastest rate of each
  for (double const rate : rates)
    if (classes.empty() || rate < 0.75 * classes.back()) classes.push_back(rate);
  auto const known = static_cast<u32>(classes.size());
  std::vector<u32> distances;
  for (auto const& link : links) {
    u32 distance = known + (!link.same_host ? 3 : !link.same_numa_node ? 2 : 1);
    if (link.same_memory) distance = 0;
    else if (link.rate > 0)
      distance = static_cast<u32>(std::ranges::count_if(
          classes, [&](double const fastest) { return fastest >= link.rate; }));
    distances.push_back(distance);
  }
  return distances;
}

std::vector<std::vector<u32>> all_distances(Participants const& all, std::vector<Site> const& sites,
                                            bool peer) {
  Devices own;
  for (auto const& device : all.devices)
    if (device) own.push_back(device);
  // Host memory is one place, whichever CPU device has it: nothing to measure. Copies between GPUs
  // ask for the machine anyway. But without peer access nothing may open their memory.
  bool const links =
      sites.size() > 1 && !own.front()->in_host_memory() && (peer || own.size() == 1);
  Machine const machine = links ? this_machine(physical_devices(own)) : Machine{};
  nlohmann::json rows = nlohmann::json::array();
  for (u32 d = 0; d < sites.size(); ++d) {
    if (!all.devices[d]) continue;
    std::vector<LinkFrom> from;
    for (auto const& owner : sites) {
      from.push_back(link_from(machine, owner, sites[d]));
      from.back().same_memory = owner.memory == sites[d].memory;
    }
    rows.push_back(distances_from(from));
  }
  auto* const job = all.spread.job;
  std::vector<std::vector<u32>> found;
  for (auto const& text : job ? gather(*job, rows.dump()) : std::vector{rows.dump()})
    for (auto const& row : nlohmann::json::parse(text)) found.push_back(row);
  return found;
}

}  // namespace meshpost::gemm
