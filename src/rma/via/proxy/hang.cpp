// When a thread does not come back from the engine.
//
// libfabric's shm (1.17) guards the queue of each process by a spin lock in that process's shared
// memory; whoever sends to it takes the lock, and so does the process itself. One that is killed
// with a lock, its own or another's, leaves it taken: who tries to take it then spins for ever,
// perhaps with a lock that a third process wants. That may be the proxy's thread or a worker of the
// run, in any of the engine's functions.
//
// No thread can be taken out of there. So the run is ended without it, and so is the World:
// - Who supervises the run is never the one that hangs, as it does not enter the engine, and finds
//   out by waiting: a round lasts too long (net::Rounds). Nothing is concluded from that but that
//   the run, which a lost process ends in any case, ends in this way: if the thread was only slow,
//   more is kept than need be.
// - From then on the hanging thread owns driving_, and with it the engine and all that a round
//   touches: nobody takes driving_ again, calls the engine or joins the thread. Whatever else the
//   thread may touch, should it come back (a process that was stopped goes on, and lets go of its
//   lock), is kept until the process ends: runs/launching/run.cpp keeps the gang with its fibers,
//   states and kernel, world_state.cpp the World with this proxy, its heap and its devices. It
//   begins no other round then, as this proxy is not awake any more: it sleeps for ever, or ends
//   with its ranks, which are poisoned.
// - Others than that thread go on and end: workers find driving_ taken or the proxy not awake, and
//   their ranks poisoned.
// - The next run begins with an exchange between all processes, which throws, as one is lost.
#include <sched.h>

#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

bool Proxy::hangs() {
  if (rounds_.taken()) return true;
  if (!channel_ || !peers_.processes().lost() || !rounds_.take_if_long()) return false;
  awake_ = false;
  channel_->engine().abandon();
  return true;
}

void Proxy::see_that_nobody_hangs() {
  if (!hangs()) return;
  auto const error = peers_.processes().lost_error("run", *peers_.processes().lost());
  throw Error(error.kind(), error.operation(),
              error.cause() + "; and a thread of this process does not come back from " +
                  channel_->engine().name() + ", so its World is of no more use",
              error.remedy());
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
