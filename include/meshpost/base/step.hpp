#pragma once
#include "meshpost/base/fn.hpp"

namespace meshpost::hooks {

/// The steps of the protocols at which a test can intervene, on CPU devices. A name says what comes
/// next.
enum class Step : u32 {
  put_copy,         ///< before the bytes of a put are copied
  notify_raise,     ///< after the bytes, before the counter is raised
  lane_send,        ///< before a message goes into a lane
  lane_take,        ///< before a rank looks through its lanes
  wait_begin,       ///< before a rank looks at its counter
  wait_consume,     ///< the count is there, before it is consumed
  barrier_arrive,   ///< before a rank arrives at a barrier
  barrier_release,  ///< before a rank tells the devices; of several CPU devices, the last one
  rank_start,       ///< before the kernel's first line
  rank_end,         ///< after the kernel's last line
  count
};

/// The reaction of a rank that has reached a step.
enum class Action : u32 {
  proceed,  ///< as if there were no hook
  delay,    ///< lets every other rank of its worker run first, then asks again
  drop,     ///< leaves the step out: bytes or a notification are lost
  fail      ///< ends the rank as if it had called fail()
};

}  // namespace meshpost::hooks
