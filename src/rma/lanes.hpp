#pragma once
#include "meshpost/device/backend.hpp"
#include "meshpost/rma/run_state.hpp"
#include "meshpost/world/heap.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost::detail {

/// The host's part in the inline protocol (meshpost/rma/lanes.hpp).
class LaneKeeper {
 public:
  static constexpr u32 limit = 1024;           ///< lanes of a rank that may be asked for
  static constexpr u32 on_gpus = 32;           ///< lanes of a rank: a warp polls them
  static constexpr u32 most_on_gpus = 1152;    ///< bytes of a message
  static constexpr u32 most_on_cpus = 1024;    ///< likewise
  static constexpr u64 memory = 128ull << 20;  ///< bytes of lanes on a device, at most

  LaneKeeper() = default;
  /// Collective: takes memory for so many lanes of each rank.
  /// \throws Error(bad_argument, out_of_memory)
  LaneKeeper(u32 lanes, Layout const& layout, Heap& heap);

  /// For a run with so many threads a rank (0: the device's default).
  Lanes lanes(Device const& device, u64 threads) const;
  /// Bytes on each device.
  Bytes size() const { return size_; }

  /// After a run that failed: what is left of it will not be taken for new.
  static void skip(RunState const& state, Device& device);

 private:
  Lanes lanes_;
  u32 on_cpus_ = 0, on_gpus_ = 0;
  Bytes size_;
};

/// After the ranks of all processes have ended: unpacks what nobody has waited for, for everything
/// is delivered at the end of a run. `specs`: of the run, with its own devices; `states`: theirs,
/// in the same order. \throws Error(device_failed)
void drain_lanes(std::vector<GangSpec> specs, std::vector<RunState> states, bool finished);

}  // namespace meshpost::detail
