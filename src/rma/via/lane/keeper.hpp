#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "meshpost/device/backend.hpp"
#include "meshpost/rma/run.hpp"
#include "meshpost/rma/run_state.hpp"
#include "meshpost/world/heap.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost::detail {

/// A launch on devices of that kind, without the devices.
using SpecOf = std::function<LaunchSpec(std::string_view kind)>;

/// The host's part in the inline protocol (meshpost/rma/lanes.hpp).
class LaneKeeper {
 public:
  static constexpr u32 limit = 1024;           ///< lanes of a rank, at most
  static constexpr u32 on_gpus = 32;           ///< lanes of a rank: a warp polls them
  static constexpr u32 most_on_gpus = 1152;    ///< bytes of a message
  static constexpr u32 most_on_cpus = 1024;    ///< bytes of a message
  static constexpr u64 memory = 128ull << 20;  ///< bytes of lanes on a device, at most
  /// Bytes on a device for the state of all pairs of ranks, at most, unless lanes are requested.
  static constexpr u64 most_for_pairs = 64ull << 20;

  LaneKeeper() = default;
  /// Collective: takes memory for so many lanes of each rank. Unset: for as many as are useful.
  /// \throws Error(bad_argument, out_of_memory)
  LaneKeeper(std::optional<u32> lanes, Layout const& layout, Heap& heap);

  /// In a run, either all GPUs have lanes or none does, because a receiver polls for what is sent
  /// by lane. So each process votes. Its own GPUs can't have lanes if one is a part of a GPU. They
  /// can't either if not all ranks of the spec fit into one (`spec_of` returns it without grids).
  /// They gain if they reach others. Warns once of a kernel that doesn't fit.
  std::string vote(SpecOf const& spec_of, Layout const& layout, Heap const& heap);
  /// The decision if no other process has a vote. `spec_of` is called when such a kernel comes for
  /// the first time.
  bool decide(KernelImage const& image, Launch const& launch, Layout const& layout,
              Heap const& heap, SpecOf const& spec_of);
  /// The decision from all votes.
  static bool agreed(std::vector<std::string> const& votes);

  /// For a run. `gpus_have`: the decision.
  Lanes lanes(Device const& device, bool gpus_have) const;
  /// Bytes on each device.
  Bytes size() const { return size_; }

  /// After a run that failed: remaining packets will not be taken for new ones.
  static void reset(RunState const& state, Device& device);

 private:
  Lanes lanes_;
  u32 on_cpus_ = 0, on_gpus_ = 0;
  Bytes size_;
  std::set<std::string> warned_;  // of these kernels
  // By entry, threads and scratch of a rank.
  std::map<std::tuple<void const*, u32, u32, u32, u64>, bool> decided_;
};

/// After a run that failed, on a device in the host's memory: unpacks what has come by lane, for
/// reports.
void unpack_lanes(RunState const& state);

}  // namespace meshpost::detail
