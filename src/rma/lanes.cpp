#include "rma/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meshpost/base/events.hpp"
#include "meshpost/rma/rank.hpp"
#include "rma/drain.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 warp = 32;
// Votes.
constexpr char can_not[] = "can't", gains_nothing[] = "gains nothing", gains_some[] = "gains";

// Half of a lane, so that two of the longest messages fit.
u32 most_in(Lanes const& lanes, u32 bytes_a_packet, u32 wanted) {
  return std::min(wanted, (lanes.packets() / 2 - 4) * bytes_a_packet);
}

// Why not all ranks fit, if they don't.
std::optional<Error> misfit(Backend& gpus, GangSpec const& spec) {
  try {
    gpus.fit(spec);
    return std::nullopt;
  } catch (Error const& error) {
    return error;
  }
}

// On a device in the host's memory.
void unpack(RunState const& state) {
  for (u32 local = 0; local < state.ranks_per_device; ++local)
    take_from_lanes(state, state.device * state.ranks_per_device + local);
}

}  // namespace

LaneKeeper::LaneKeeper(std::optional<u32> lanes, Layout const& layout, Heap& heap) {
  if (lanes.value_or(0) > limit)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} lanes of each rank, at most {}", *lanes, limit),
                "ask for fewer; a rank needs one for each rank that sends it short messages");
  u64 const here = layout.ranks_per_device, world = layout.ranks();
  bool const many = here * world * (sizeof(u32) + sizeof(LaneOut)) > most_for_pairs;
  if (std::ranges::find(layout.kinds, "cpu") != layout.kinds.end()) on_cpus_ = lanes.value_or(0);
  if (std::ranges::count(layout.kinds, "cuda") > 1)
    on_gpus_ = std::min(lanes.value_or(many ? 0 : on_gpus), on_gpus);
  u64 const each = std::max(on_cpus_, on_gpus_);
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

std::string LaneKeeper::vote(GangSpec spec, Layout const& layout, Heap const& heap) {
  bool gains = false;
  for (u32 own = 0; own < layout.own_count(); ++own) {
    auto const& device = layout.devices[own];
    if (device->in_host_memory()) continue;
    if (device->whole() || heap.spaces().stride(own) > LaneHeader::most_heap) return can_not;
    spec.grids.push_back({device, layout.ranks_per_device});
    for (u32 other = 0; other < layout.device_count(); ++other)
      gains |= layout.kinds[other] == "cuda" && other != layout.first_device + own &&
               !layout.far(own, other);
  }
  if (on_gpus_ == 0 || spec.grids.empty()) return gains_nothing;
  u64 const threads = u64{spec.threads.x} * spec.threads.y * spec.threads.z;
  if (!spec.image.cuda || !spec.image.cuda_lanes || (threads != 0 && threads < warp))
    return can_not;
  auto& gpus = backend(spec.grids.front().device->kind());
  auto const without = std::exchange(spec.image.cuda, spec.image.cuda_lanes);
  auto const error = misfit(gpus, spec);
  if (!error) return gains ? std::string(gains_some) : gains_nothing;
  spec.image.cuda = without;
  if (gains && !misfit(gpus, spec) && warned_.insert(spec.image.name).second)
    warn(fmt::format(
        "{} runs without lanes, so its short messages to other GPUs take up to twice the time: "
        "with them, {}; {}, or set MESHPOST_LANES=0 if it sends none",
        spec.image.name, error->cause(), error->remedy()));
  return can_not;
}

bool LaneKeeper::agreed(std::vector<std::string> const& votes) {
  return std::ranges::find(votes, can_not) == votes.end() &&
         std::ranges::find(votes, gains_some) != votes.end();
}

Lanes LaneKeeper::lanes(Device const& device, bool gpus_have) const {
  Lanes lanes = lanes_;
  if (device.in_host_memory()) {
    lanes.count = on_cpus_;
    lanes.most = most_in(lanes, 8, most_on_cpus);
  } else if (gpus_have) {
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
