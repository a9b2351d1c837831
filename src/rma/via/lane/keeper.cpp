#include "rma/via/lane/keeper.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "meshpost/base/events.hpp"
#include "meshpost/rma/rank.hpp"

namespace meshpost::detail {
namespace {

constexpr u32 warp = 32;
// Votes.
constexpr char can_not[] = "can't", gains_nothing[] = "gains nothing", gains_some[] = "gains";

// At most half of a lane, so that two of the longest messages fit.
u32 most_in(Lanes const& lanes, u32 bytes_a_packet, u32 wanted) {
  return std::min(wanted, (lanes.packets() / 2 - 4) * bytes_a_packet);
}

// The reason why not all ranks fit, if they don't.
std::optional<Error> misfit(std::vector<LaunchSpec> const& specs, bool lanes) try {
  for (auto spec : specs) {
    spec.by_warp = lanes;
    backend(spec.grids.front().device->kind()).fit(spec);
  }
  return std::nullopt;
} catch (Error const& error) {
  return error;
}

bool polls_by_warp(DeviceTraits const& kind) { return kind.extra_polls == ExtraPolls::by_warp; }
bool asks_for_news(DeviceTraits const& kind) { return kind.extra_polls == ExtraPolls::has_news; }

}  // namespace

LaneKeeper::LaneKeeper(std::optional<u32> lanes, Layout const& layout, Heap& heap) {
  if (lanes.value_or(0) > limit)
    throw Error(Kind::bad_argument, "World",
                fmt::format("{} lanes of each rank, at most {}", *lanes, limit),
                "ask for fewer; a rank needs one for each rank that sends it short messages");
  u64 const here = layout.ranks_per_device, world = layout.ranks();
  bool const many = here * world * (sizeof(u32) + sizeof(LaneOut)) > most_for_pairs;
  if (std::ranges::any_of(layout.traits, asks_for_news)) on_cpus_ = lanes.value_or(0);
  if (std::ranges::count_if(layout.traits, polls_by_warp) > 1)
    on_gpus_ = std::min(lanes.value_or(many ? 0 : on_gpus), on_gpus);
  u64 const each = std::max(on_cpus_, on_gpus_);
  if (each == 0) return;
  auto const take = [&](u64 bytes) {
    size_ = Bytes{size_ + bytes};
    return heap.allocate(bytes);
  };
  lanes_.shift = 10;
  while (lanes_.shift > 5 && here * each * lanes_.packets() * sizeof(Packet) > memory)
    --lanes_.shift;
  lanes_.rings = take(here * each * lanes_.packets() * sizeof(Packet));
  lanes_.taken = take(here * each * sizeof(u32));
  lanes_.claims = take(here * sizeof(u32));
  lanes_.owners = take(here * each * sizeof(u64));
  lanes_.credits = take(here * world * sizeof(u32));
  lanes_.outs = take(here * world * sizeof(LaneOut));
}

std::string LaneKeeper::vote(SpecOf const& spec_of, Layout const& layout, Heap const& heap) {
  bool gains = false;
  std::vector<LaunchSpec> specs;  // one for each kind
  for (u32 own = 0; own < layout.own_count(); ++own) {
    auto const& device = layout.devices[own];
    if (!polls_by_warp(layout.traits[layout.first_device + own])) continue;
    if (device->whole() || heap.spaces().stride(own) > LaneHeader::most_heap) return can_not;
    if (specs.empty() || specs.back().grids.front().device->kind() != device->kind())
      specs.push_back(spec_of(device->kind()));
    specs.back().grids.push_back({device, layout.ranks_per_device});
    for (u32 other = 0; other < layout.device_count(); ++other)
      gains |= polls_by_warp(layout.traits[other]) && other != layout.first_device + own &&
               !layout.far(own, other);
  }
  if (on_gpus_ == 0 || specs.empty()) return gains_nothing;
  auto const& [image, threads] = std::tie(specs.front().image, specs.front().threads);
  u64 const all_threads = u64{threads.x} * threads.y * threads.z;
  if (!image.cuda || !image.cuda_by_warp || (all_threads != 0 && all_threads < warp))
    return can_not;
  auto const error = misfit(specs, true);
  if (!error) return gains ? std::string(gains_some) : gains_nothing;
  if (gains && !misfit(specs, false) && warned_.insert(image.name).second)
    warn(fmt::format(
        "{} runs without lanes, so its short messages to other GPUs take up to twice the time: "
        "with them, {}; {}, or set MESHPOST_LANES=0 if it sends none",
        image.name, error->cause(), error->remedy()));
  return can_not;
}

bool LaneKeeper::decide(KernelImage const& image, Launch const& launch, Layout const& layout,
                        Heap const& heap, SpecOf const& spec_of) {
  if (on_gpus_ == 0) return false;
  auto const& threads = launch.threads;
  std::tuple const kernel(image.cuda, threads.x, threads.y, threads.z, launch.scratch.value);
  auto const known = decided_.find(kernel);
  if (known != decided_.end()) return known->second;
  auto const said = vote(spec_of, layout, heap);
  bool const yes = agreed({said});
  if (said != can_not) decided_[kernel] = yes;  // can_not may change, with free memory
  return yes;
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

void LaneKeeper::reset(RunState const& state, Device& device) {
  auto const& lanes = state.lanes;
  if (lanes.count == 0) return;
  u64 const here = state.ranks_per_device, all = here * lanes.count;
  std::vector<u32> taken(all);
  LaneEnd const first(state, state.device * state.ranks_per_device);
  Bytes const size{taken.size() * sizeof(u32)};
  device.read(taken.data(), first.taken(0), size);
  for (u32& position : taken) position += lanes.packets();
  device.write(first.taken(0), taken.data(), size);
  device.fill(first.claims(), 0, Bytes{here * sizeof(u32)});
  device.fill(first.owner(0), 0, Bytes{all * sizeof(u64)});
  device.fill(first.credit(0), 0, Bytes{here * state.ranks * sizeof(u32)});
  device.fill(&first.out(0), 0, Bytes{here * state.ranks * sizeof(LaneOut)});
}

void unpack_lanes(RunState const& state) {
  for (u32 local = 0; local < state.ranks_per_device && state.lanes.count != 0; ++local)
    take_from_lanes(state, state.device * state.ranks_per_device + local);
}

}  // namespace meshpost::detail
