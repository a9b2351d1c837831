#pragma once
#include <vector>

#include "meshpost/pipeline/schedule.hpp"

namespace meshpost::pipelining {

/// The process that executes each part of a schedule. A plain value.
///
/// A leg within one process is run by that process. For a leg from one process to another, the
/// user's function for segments must be called where the user's memory is. So the process whose end
/// is the user's memory runs it. If there is none, the sender does. The other end is exposed.
struct Distribution {
  std::vector<u32> buffers;  ///< process of each buffer
  std::vector<u32> runners;  ///< process of each leg

  bool crosses(u32 leg) const { return buffers[leg] != buffers[leg + 1]; }
  /// True if another process than the buffer's copies from or to it.
  bool exposed(u32 buffer) const;
  /// Other processes that wait for a leg's ends: those of the legs before it and after it.
  std::vector<u32> listeners(u32 leg) const;
};

/// `levels`: the process of each level.
/// \throws Error(bad_argument) for a leg from the user's memory in one process to the user's in
/// another
Distribution distribute(Schedule const& schedule, std::vector<u32> const& levels);

}  // namespace meshpost::pipelining
