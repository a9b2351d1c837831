#include "rma/runs/ending/unconsumed.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "rma/runs/diagnosing/counter_snapshot.hpp"

namespace meshpost::detail {
namespace {

struct Owner {
  WindowRecord const* window;
  u32 rank, tag;
};

// The owner of the word at this offset of a device's part of the heap.
std::optional<Owner> owner_of(std::map<u64, WindowRecord const*> const& by_counters, u32 first_rank,
                              u64 offset) {
  auto after = by_counters.upper_bound(offset);
  if (after == by_counters.begin()) return std::nullopt;
  auto const& [begin, window] = *--after;
  if (offset >= begin + window->counter_bytes) return std::nullopt;
  auto const& info = window->info;
  u64 const at = offset - begin;
  u32 const tag = static_cast<u32>(at % info.counter_part / sizeof(u32));
  return Owner{window, first_rank + static_cast<u32>(at / info.counter_pitch()), tag};
}

}  // namespace

std::vector<Unconsumed> read_unconsumed(WorldState& world, u32 run, u64 most, u64& left_out) {
  auto const& layout = world.layout();
  std::map<u64, WindowRecord const*> by_counters;
  for (auto const& [number, window] : world.windows().all())
    if (window.counter_bytes != 0) by_counters[window.info.counters] = &window;
  // By window, rank and tag: counts from near and far are added.
  std::map<std::tuple<u32, u32, u32>, std::pair<Owner, u32>> found;
  u64 words = 0, listed = 0;
  for (u32 own = 0; own < layout.own_count(); ++own) {
    u32 const device = layout.first_device + own;
    auto const& news = *world.resources().memory(own).news.as<RunNews>();
    u32 const left = news.of_run == run ? news.left : 0;
    if (left == 0) continue;
    RunWords at_end;
    layout.devices[own]->read(&at_end, world.heap().at(device, world.resources().words()),
                              Bytes{sizeof at_end});
    std::vector<LeftCount> list(std::min(left, RunWords::most_left));
    layout.devices[own]->read(list.data(), world.heap().at(device, at_end.left_counts),
                              Bytes{list.size() * sizeof(LeftCount)});
    words += left;
    listed += list.size();
    for (auto const& one : list)
      if (auto const owner = owner_of(by_counters, device * layout.ranks_per_device, one.offset))
        found
            .try_emplace({owner->window->info.number, owner->rank, owner->tag},
                         std::pair(*owner, 0u))
            .first->second.second += one.count;
  }
  std::vector<Unconsumed> unconsumed;
  left_out = words - listed;
  if (found.empty()) return unconsumed;
  CounterSnapshot const counters(world);  // their last raisers are still there
  for (auto const& [key, one] : found) {
    auto const& [owner, count] = one;
    if (unconsumed.size() == most) {
      ++left_out;
      continue;
    }
    auto const raised_by = counters.of(owner.window->info, owner.rank, owner.tag).raised_by;
    unconsumed.push_back({owner.window->name, RankId{owner.rank}, Tag{owner.tag}, count,
                          RankId{WindowInfo::raiser(raised_by)}});
  }
  return unconsumed;
}

}  // namespace meshpost::detail
