#include "rma/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/rma/rank.hpp"
#include "rma/drain.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 warp = 32;

// Half of a lane, so that two of the longest messages fit.
u32 most_in(Lanes const& lanes, u32 bytes_a_packet, u32 wanted) {
  return std::min(wanted, (lanes.packets() / 2 - 4) * bytes_a_packet);
}

// On a device in the host's memory.
void unpack(RunState const& state) {
  for (u32 local = 0; local < state.ranks_per_device; ++local)
    take_from_lanes(state, state.device * state.ranks_per_device + local);
}

}  // namespace

LaneKeeper::LaneKeeper(u32 lanes, Layout const& layout, Heap& heap) {
  if (lanes > limit)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} lanes of each rank, at most {}", lanes, limit),
                "ask for fewer; a rank needs one for each rank that sends it short messages");
  if (std::ranges::find(layout.kinds, "cpu") != layout.kinds.end()) on_cpus_ = lanes;
  if (std::ranges::count(layout.kinds, "cuda") > 1) on_gpus_ = std::min(lanes, on_gpus);
  u64 const here = layout.ranks_per_device, world = layout.ranks(),
            each = std::max(on_cpus_, on_gpus_);
  if (each == 0) return;
  auto const data = [&](u64 bytes) {
    size_ = Bytes{size_ + bytes};
    return heap.allocate(bytes);
  };
  auto const cleared = [&](u64 bytes) {
    size_ = Bytes{size_ + bytes};
    return heap.allocate_counters(bytes);
  };
  lanes_.shift = 10;
  while (lanes_.shift > 5 && here * each * lanes_.packets() * sizeof(Packet) > memory)
    --lanes_.shift;
  lanes_.rings = data(here * each * lanes_.packets() * sizeof(Packet));
  lanes_.taken = data(here * each * sizeof(u32));
  lanes_.claims = cleared(here * sizeof(u32));
  lanes_.owners = cleared(here * each * sizeof(u64));
  lanes_.credits = cleared(here * world * sizeof(u32));
  lanes_.outs = cleared(here * world * sizeof(LaneOut));
}

Lanes LaneKeeper::lanes(Device const& device, u64 threads) const {
  Lanes lanes = lanes_;
  if (device.in_host_memory()) {
    lanes.count = on_cpus_;
    lanes.most = most_in(lanes, 8, most_on_cpus);
  } else if (device.kind() == "cuda" && !device.whole() && (threads == 0 || threads >= warp)) {
    lanes.count = on_gpus_;
    lanes.most = most_in(lanes, 12, most_on_gpus);
  }
  return lanes;
}

void LaneKeeper::skip(RunState const& state, Device& device) {
  if (state.lanes.count == 0) return;
  std::vector<u32> taken(u64{state.ranks_per_device} * state.lanes.count);
  auto* const there = LaneEnd(state, state.device * state.ranks_per_device).taken(0);
  Bytes const size{taken.size() * sizeof(u32)};
  device.read(taken.data(), there, size);
  for (u32& position : taken) position += state.lanes.packets();
  device.write(there, taken.data(), size);
}

void drain_lanes(std::vector<GangSpec> specs, std::vector<RunState> states, bool finished) {
  static constexpr DrainLanes kernel;
  std::size_t next = 0;
  for (auto& spec : specs) {
    bool on_gpus = false;
    for (auto& grid : spec.grids) {
      auto& state = states[next++];
      if (state.lanes.count == 0) continue;
      if (grid.device->in_host_memory()) {
        unpack(state);
      } else {
        state.trace = {};  // which shows the user's kernel
        grid.state = &state;
        on_gpus = true;
      }
    }
    if (!on_gpus || !finished) continue;
    spec.image = drain_image();
    spec.image.cuda = spec.image.cuda_lanes;
    spec.kernel = &kernel;
    spec.threads = {warp, 1, 1};
    spec.scratch = Bytes{0};
    spec.after.clear();
    auto const gang = backend(spec.grids.front().device->kind()).launch(spec);
    while (!gang->finished()) gang->doze(std::chrono::microseconds(10));
    if (auto const failure = gang->failure()) throw *failure;
  }
}

}  // namespace meshpost::detail
