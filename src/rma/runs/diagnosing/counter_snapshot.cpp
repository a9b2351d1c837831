#include "rma/runs/diagnosing/counter_snapshot.hpp"

#include <algorithm>

namespace meshpost::detail {

namespace {

// The ranges of counters of all windows. Ranges near each other are joined, because a copy from a
// device takes as long as these bytes.
std::vector<Heap::Range> ranges_of(std::map<u32, WindowRecord> const& windows) {
  constexpr u64 near = u64{64} << 10;
  std::vector<Heap::Range> all, ranges;
  for (auto const& [number, window] : windows)
    if (window.counter_bytes != 0)
      all.push_back({window.info.counters, window.counter_bytes, Heap::Swept::counters});
  std::ranges::sort(all, {}, &Heap::Range::offset);
  for (auto const& one : all) {
    if (ranges.empty() || one.offset > ranges.back().offset + ranges.back().size + near)
      ranges.push_back(one);
    else ranges.back().size = one.offset + one.size - ranges.back().offset;
  }
  return ranges;
}

}  // namespace

CounterSnapshot::CounterSnapshot(WorldState& world)
    : world_(world), words_(world.layout().device_count()) {
  auto const& layout = world.layout();
  auto const ranges = ranges_of(world.windows().all());
  for (u32 own = 0; own < layout.own_count(); ++own) {
    u32 const d = layout.first_device + own;
    for (auto const& range : ranges) {
      auto& copy = words_[d][range.offset];
      copy.resize(range.size / sizeof(u32));
      layout.own(d).read(copy.data(), world.heap().at(d, range.offset), Bytes{range.size});
    }
  }
}

std::span<u32 const> CounterSnapshot::words_of(WindowInfo const& window, u32 rank,
                                               WindowInfo::CounterArray array) const {
  auto const& layout = world_.layout();
  u64 const at = window.counters + u64{rank % layout.ranks_per_device} * window.counter_pitch() +
                 u64{array} * window.counter_part;
  auto const& ranges = words_[layout.device_of(rank)];
  auto after = ranges.upper_bound(at);
  if (after == ranges.begin()) return {};
  auto const& [offset, words] = *--after;
  u64 const begin = std::min<u64>((at - offset) / sizeof(u32), words.size());
  return std::span(words).subspan(begin, std::min<u64>(window.tags, words.size() - begin));
}

CounterSnapshot::Count CounterSnapshot::of(WindowInfo const& window, u32 rank, u32 tag) const {
  auto const word = [&](WindowInfo::CounterArray array) {
    auto const words = words_of(window, rank, array);
    return tag < words.size() ? words[tag] : 0;
  };
  return {word(WindowInfo::counts) + word(WindowInfo::near_counts), word(WindowInfo::raised_by)};
}

}  // namespace meshpost::detail
