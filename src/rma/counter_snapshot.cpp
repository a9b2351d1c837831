#include "rma/counter_snapshot.hpp"

namespace meshpost::detail {

CounterSnapshot::CounterSnapshot(WorldState& world) : world_(world) {
  for (u32 d = 0; d < world.layout().device_count(); ++d) {
    words_.emplace_back();
    for (auto const& range : world.heap().counter_ranges()) {
      auto& copy = words_[d][range.offset];
      copy.resize(range.size / sizeof(u32));
      world.layout().devices[d]->read(copy.data(), world.heap().at(d, range.offset),
                                      Bytes{range.size});
    }
  }
}

u32 CounterSnapshot::word(u32 device, u64 offset) const {
  auto after = words_[device].upper_bound(offset);
  if (after == words_[device].begin()) return 0;
  --after;
  u64 const index = (offset - after->first) / sizeof(u32);
  return index < after->second.size() ? after->second[index] : 0;
}

CounterSnapshot::Count CounterSnapshot::of(WindowInfo const& window, u32 rank, u32 tag) const {
  auto const& layout = world_.layout();
  u64 const at = window.counters + u64{rank % layout.ranks_per_device} * window.counter_pitch +
                 tag * sizeof(u32);
  u32 const device = layout.device_of(rank);
  return {word(device, at), word(device, at + window.counter_pitch / 2)};
}

std::vector<Leftover> CounterSnapshot::leftovers() const {
  std::vector<Leftover> left;
  for (auto const& [number, window] : world_.windows())
    for (u32 rank = 0; rank < world_.layout().ranks(); ++rank)
      for (u32 tag = 0; tag < window.info.tags; ++tag)
        if (auto const [count, sender] = of(window.info, rank, tag); count != 0)
          left.push_back({window.name, RankId{rank}, Tag{tag}, count, RankId{sender - 1}});
  return left;
}

}  // namespace meshpost::detail
