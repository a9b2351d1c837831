#pragma once
#include "meshpost/rma/run_state.hpp"
#include "meshpost/world/heap.hpp"
#include "meshpost/world/layout.hpp"

namespace meshpost::detail {

/// The host's part in the inline protocol (meshpost/rma/lanes.hpp).
class LaneKeeper {
 public:
  static constexpr u32 slots = 8;     ///< messages that a lane holds
  static constexpr u32 most = 1024;   ///< bytes of a message
  static constexpr u32 limit = 1024;  ///< lanes of a rank

  LaneKeeper() = default;
  /// Collective: takes memory for so many lanes of each rank. \throws Error(out_of_memory)
  LaneKeeper(u32 lanes, Layout const& layout, Heap& heap);

  Lanes const& lanes() const { return lanes_; }
  /// Bytes on each device.
  Bytes size() const { return size_; }

  /// After the ranks of all processes have ended: unpacks what nobody has waited for. `state`: of
  /// an own device, with or without lanes.
  static void unpack(RunState const& state);
  /// The same, of a run that failed: what is left of it will not be taken for new.
  static void skip(RunState const& state);

 private:
  Lanes lanes_;
  Bytes size_;
};

}  // namespace meshpost::detail
