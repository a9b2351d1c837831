// When the courier's thread does not come back from a network engine: why it may be so, see
// src/net/channel_losses.cpp. Here a second thread watches it, which never enters an engine:
// - Once a process is known as lost, it takes a round that lasts for too long (net::Rounds). From
//   then on all that was the courier's thread's is its own, and nothing of it is in the middle of a
//   change: that thread is inside the engine and in no event. So copies under way can be ended, and
//   their memory, here and at their other end, is the user's again: the engine has only been given
//   copies of it.
// - The engine still has what it was given to send, itself, and whom it would tell of events. So
//   all desks, with this courier and the State that it is a part of, are kept until the process
//   ends, and the thread is not joined. Should it come back (a process that was stopped goes on,
//   and lets go of its lock), it stays in net::Watched, before it touches any of it.
// - Other desks have the same thread, so they end too: what is asked of them fails at once.
// - Others' copies from and to this process would never be answered. Their channels are told, and
//   take this process for lost.
// - The JobMemory's end begins with an exchange, which throws, as a process is lost.
#include <algorithm>

#include "copy/job/courier.hpp"

namespace meshpost::copying {
namespace {

Error without_relay(Error const& loss) {
  return {loss.kind(), loss.operation(),
          loss.cause() + "; it passes on what copy servers say of losses, so none can go on",
          loss.remedy()};
}

}  // namespace

void Courier::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, net::Rounds::longest_pause, [this] { return ended_; })) {
    auto const loss = peers_.processes().lost();
    if (!loss || !watched_ || !watched_->take_if_it_hangs()) continue;
    hang_ = watched_->hang_error(peers_.processes().lost_error("copy", *loss),
                                 peers_.processes().name(peers_.number()), "JobMemory");
    std::vector<Desk*> desks(desks_.size());
    std::ranges::transform(desks_, desks.begin(), [](auto const& desk) { return desk.get(); });
    lock.unlock();  // ends of copies call others
    for (auto* const desk : desks) desk->fail_all(*hang_);
    return;
  }
}

void Courier::look_for_losses(std::vector<Desk*> const& desks) {
  auto const& processes = peers_.processes();
  auto const first = processes.gone();
  if (!first) return;
  for (auto const& gone : processes.all_gone())
    for (auto* const desk : desks)
      desk->lose(gone.process, processes.lost_error("copy", gone).cause());
  // The others have given up this process, which was stopped: they read nothing of it any more.
  auto const own = processes.gone(peers_.number());
  auto const relay = processes.gone(0);
  for (auto* const desk : desks)
    if (own) desk->fail_all(processes.lost_error("copy", *own));
    else if (!desk->outlives_others()) desk->fail_all(processes.lost_error("copy", *first));
    // Without notices a copy whose message is lost would wait for ever.
    else if (relay) desk->fail_all(without_relay(processes.lost_error("copy", *relay)));
}

}  // namespace meshpost::copying
