// When the progress thread does not come back from a network engine: why it may be so, see
// src/net/channel_losses.cpp. Here a second thread watches it, which never enters an engine:
// - Once a process is known as lost, it takes a round that lasts for too long (net::Rounds). From
//   then on all that was the progress thread's is its own, and nothing of it is in the middle of a
//   change: that thread is inside the engine and in no event. So copies under way can be ended, and
//   their memory, here and at their other end, is the user's again: the engine has only been given
//   copies of it.
// - The engine still has what it was given to send, itself, and whom it would tell of events. So
//   all copy servers, with this progress thread and the State that it is a part of, are kept until
//   the process ends, and the thread is not joined. Should it come back (a process that was stopped
//   goes on, and lets go of its lock), it stays in net::Watched, before it touches any of it.
// - Other copy servers have the same thread, so they end too: what is asked of them fails at once.
// - Others' copies from and to this process would never be answered. Their channels are told, and
//   take this process for lost.
// - The JobMemory's end begins with an exchange, which throws, as a process is lost.
#include <algorithm>

#include "copy/job/progress_thread.hpp"

namespace meshpost::copying {

void ProgressThread::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, net::Rounds::longest_pause, [this] { return ended_; })) {
    auto const loss = group_.processes().lost();
    if (!loss || !watched_ || !watched_->take_if_it_hangs()) continue;
    hang_ = watched_->hang_error(group_.processes().lost_error("copy", *loss),
                                 group_.processes().name(group_.number()), "JobMemory");
    std::vector<CopyServer*> servers(servers_.size());
    std::ranges::transform(servers_, servers.begin(),
                           [](auto const& server) { return server.get(); });
    lock.unlock();  // ends of copies call others
    for (auto* const server : servers) server->fail_all(*hang_);
    return;
  }
}

void ProgressThread::look_for_losses(std::vector<CopyServer*> const& servers) {
  auto& processes = group_.processes();
  if (!processes.gone()) return;
  auto const losses = processes.losses();
  std::optional<Error> all;
  // The others have given up this process, which was stopped: they read nothing of it any more.
  if (auto const own = processes.gone(group_.number())) all = processes.lost_error("copy", *own);
  // Processes hear of losses through process 0 alone, and tell each other through it. Without it
  // two survivors could wait for each other for ever.
  else if (auto const first = processes.gone(0)) {
    auto const error = processes.lost_error("copy", *first);
    all = Error(error.kind(), error.operation(),
                error.cause() +
                    "; without process 0 nobody hears of further losses, so copies "
                    "between other processes end, too",
                error.remedy());
  }
  for (auto* const server : servers) {
    for (auto const& loss : losses) server->lose(loss.process, loss.how);
    if (all) server->fail_all(*all);
    else if (!losses.empty() && !server->outlives_others())
      server->fail_all(processes.lost_error("copy", losses.front()));
  }
}

}  // namespace meshpost::copying
