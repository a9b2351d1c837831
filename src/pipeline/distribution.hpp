#pragma once
#include <vector>

#include "meshpost/pipeline/schedule.hpp"

namespace meshpost::pipelining {

/// Which process does what of a schedule. A plain value.
///
/// A leg within one process is that one's. Of a leg from one process to another, who asks the
/// user's function for segments must be where the user's memory is: so it is run by the process
/// whose end is the user's memory, else by the one that sends; the other end is exposed.
struct Distribution {
  std::vector<u32> buffers;  ///< process of each buffer
  std::vector<u32> runners;  ///< process of each leg

  bool crosses(u32 leg) const { return buffers[leg] != buffers[leg + 1]; }
  /// Whether another process than the buffer's copies from or to it.
  bool exposed(u32 buffer) const;
  /// Processes that wait for a leg's ends, but its own: those of the legs before it and after it.
  std::vector<u32> listeners(u32 leg) const;
};

/// `levels`: the process of each level.
/// \throws Error(bad_argument) for a leg from the user's memory in one process to the user's in
/// another
Distribution distribute(Schedule const& schedule, std::vector<u32> const& levels);

}  // namespace meshpost::pipelining
