#include "rma/runs/ending/end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "meshpost/base/events.hpp"

namespace meshpost::detail {
namespace {

template <class Work>
void try_to(Work&& work) {
  try {
    work();
  } catch (...) {  // the first error is the reason
    return;
  }
}

}  // namespace

void report_unconsumed(WorldState const& world, RunRecord const& record) {
  auto const& left = record.result.unconsumed;
  if (left.empty()) return;
  std::string text =
      fmt::format("{} ended with notifications that nobody consumed:", record.name());
  for (std::size_t i = 0; i < std::min<std::size_t>(left.size(), 4); ++i)
    text += fmt::format(" rank {} has {} of tag {} in {}, the last from {};", left[i].rank.value,
                        left[i].count, left[i].tag.value, left[i].window,
                        world.host().sender_name(left[i].sender.value));
  if (left.size() > 4)
    text += fmt::format(" and {} more;", left.size() - 4 + record.result.unconsumed_left_out);
  warn(text + " wait for them, or don't send them");
}

std::vector<std::vector<double>> collect_timings(WorldState& world,
                                                 std::vector<RunState> const& states, u32 run) {
  std::vector<std::vector<double>> timings(states.size());
  for (u32 d = 0; d < states.size(); ++d) {
    auto const& timers = states[d].timers;
    auto const& news = *world.resources().memory(d).news.as<RunNews>();
    // Timings are read if there are some, or if the ranks did not meet.
    if (static_cast<i32>(memory::load_acquire(&news.ended) - run) >= 0 && news.of_run != run)
      continue;
    for (u32 k = 0; k < TimerBuffer::capacity; ++k) {
      u64 first = ~u64{0}, last = 0;
      for (u32 r = 0; r < states[d].ranks_per_device; ++r) {
        auto* const times = timers.interval(r, k);
        if (times[0] != 0) first = std::min(first, times[0]);
        last = std::max(last, times[1]);
      }
      if (last == 0) break;  // the rest was never stopped
      timings[d].push_back(static_cast<double>(last - first) * 1e-9);
    }
    auto& memory = world.resources().memory(d).timers;
    std::memset(memory.data(), 0, memory.size());
  }
  return timings;
}

// Memory is written in separate streams, which wait for no kernel. For its host, a GPU's run has
// ended when each device has said so. If runs are queued, the device's add to the others'
// RunWords::swept may come after that, and after the words were set back. When its kernel has
// ended, the add has come.
void clean_up_after_failure(WorldState& world, std::vector<RunState> const& states, u32 last) {
  try_to([&] { world.resources().let_kernels_end(); });
  for (u32 d = 0; d < states.size(); ++d) {
    auto& device = *world.layout().devices[d];
    // Runs queued behind may have had lanes.
    auto state = states[d];
    state.lanes = world.lanes().lanes(device, true);
    try_to([&] { LaneKeeper::reset(state, device); });
    try_to([&] { world.resources().memory(d).clear(device); });
  }
  try_to([&] { world.resources().clear_counters(last, world.agreement().begun()); });
  try_to([&] { world.host().forget_counts(); });
}

}  // namespace meshpost::detail
