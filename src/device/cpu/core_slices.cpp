// Records when ranks have a core and when they are ready for one, for timelines.
//
// A worker notes this of its own fibers, around each turn of one. If a fiber gets ready while
// another one runs, the worker sees it at the end of that turn. So a rank's `ready` is late by at
// most a turn, or by the pause between two looks.
#include <utility>

#include "device/cpu/scheduler.hpp"

namespace meshpost::cpu {
namespace {

// Threads of a rank take turns in one slice: a gap between two of them is not worth a slice of its
// own.
constexpr u64 same_slice_ns = 500;
// A look at a fiber takes some ns. Looks at all of them must cost no more than turns do.
constexpr u64 look_ns = 4;

std::vector<CoreSlice>& slices_of(RankFibers const& rank) {
  return rank.grid->record->ranks[rank.local_rank];
}

}  // namespace

u64 CpuLaunch::begin_slice(Fiber const& fiber) {
  u64 const now = memory::clock_ns();
  auto& rank = *fiber.rank;
  if (rank.ready_since == 0) rank.ready_since = now;
  return now;
}

void CpuLaunch::end_slice(Worker& worker, Fiber const& fiber, u64 begin) const {
  u64 const now = memory::clock_ns();
  auto& rank = *fiber.rank;
  auto& slices = slices_of(rank);
  u64 const ready = std::exchange(rank.ready_since, 0);
  if (!slices.empty() && begin - slices.back().end <= same_slice_ns) slices.back().end = now;
  else if (slices.size() < slices.capacity()) slices.push_back({ready, begin, now});
  u64 const pause = look_ns * worker.fibers.size();
  if (now - worker.looked_at_all < pause && fiber.rank->threads > 1) return;
  worker.looked_at_all = now;
  for (Fiber const* const other : worker.fibers)
    if (auto& theirs = *other->rank; theirs.ready_since == 0 &&
                                     !other->done.load(std::memory_order_relaxed) &&
                                     this->ready(*other))
      theirs.ready_since = now;
}

std::vector<u32> CpuLaunch::running_ranks() const {
  std::vector<u32> ranks;
  for (auto const& worker : workers())
    if (u32 const rank = worker->runs.load(std::memory_order_relaxed); rank != Worker::nobody)
      ranks.push_back(rank);
  return ranks;
}

}  // namespace meshpost::cpu
