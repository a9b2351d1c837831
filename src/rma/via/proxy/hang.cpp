// When a thread does not come back from the engine: why it may be so, and how it is noticed, see
// src/net/channel_losses.cpp. It may be the proxy's thread or a worker of the run. The run is ended
// without it, and so is the World:
// - Who supervises the run is never the one that hangs, as it does not enter the engine, and finds
//   out by waiting. Nothing is concluded from that but that the run, which a lost process ends in
//   any case, ends in this way: if the thread was only slow, more is kept than need be.
// - From then on the hanging thread owns driving_, and with it the engine and all that is
//   done under it: nobody takes driving_ again, calls the engine or joins the thread. Should it
//   come back (a process that was stopped goes on, and lets go of its lock), the channel keeps it
//   for ever. Its stack and what the engine may touch are kept until the process ends:
//   runs/launching/run.cpp keeps the gang with its fibers, states and kernel, world_state.cpp the
//   World with this proxy, its heap and its devices.
// - Others than that thread go on and end: workers find driving_ taken or the proxy not awake, and
//   their ranks poisoned.
// - The next run begins with an exchange between all processes, which throws, as one is lost.
#include <sched.h>

#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

bool Proxy::hangs() {
  if (!channel_ || channel_->hangs()) return channel_.has_value();
  if (!peers_.processes().lost() || !channel_->take_if_it_hangs()) return false;
  awake_ = false;
  return true;
}

void Proxy::see_that_nobody_hangs() {
  if (!hangs()) return;
  throw channel_->hang_error(peers_.processes().lost_error("run", *peers_.processes().lost()),
                             "this process", "World");
}

// Instead of a round of the supervisor's own. After the last who helped, the thread rests no more
// than once before it does all itself.
void Proxy::wake() {
  {
    std::scoped_lock const lock(resting_);
    woken_ = true;
  }
  wakes_.notify_all();
}

std::unique_lock<std::mutex> Proxy::alone() {
  std::unique_lock lock(driving_, std::try_to_lock);
  for (; !lock.owns_lock() && !lock.try_lock(); sched_yield()) see_that_nobody_hangs();
  return lock;
}

}  // namespace meshpost::detail
