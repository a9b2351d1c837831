// When the progress thread does not come back from a network engine: why it may be so, see
// src/net/channel_losses.cpp. Here a second thread watches it, which never enters an engine:
// - Once a process is known as lost, it takes a round that lasts for too long (net::Rounds). From
//   then on all that was the progress thread's is its own, and nothing of it is in the middle of a
//   change: that thread is inside the engine and in no event. So what is under way can be ended,
//   and its memory, here and at the other end, is the user's again: the engine has only been given
//   copies of it.
// - The engine still has what it was given to send, itself, and whom it would tell of events. So
//   all servers, with this progress thread and what it is a part of, are kept until the process
//   ends, and the thread is not joined. Should it come back (a process that was stopped goes on,
//   and lets go of its lock), it stays in net::Watched, before it touches any of it.
// - Other servers have the same thread, so they end too: what is asked of them fails at once.
// - What others ask of this process would never be answered. Their channels are told, and take this
//   process for lost.
// - The user's end (of a JobMemory, a World) begins with an exchange, which throws, as a process is
//   lost.
#include <fmt/format.h>

#include <algorithm>

#include "world/progress_thread.hpp"

namespace meshpost {

// Processes are called without mutex_: their thread calls wake() under a lock of its own.
void ProgressThread::watch() {
  auto& processes = group_.processes();
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, net::Rounds::longest_pause, [this] { return ended_; })) {
    auto* const watched = watched_;
    lock.unlock();
    auto const loss = processes.lost();
    bool const hangs = loss && watched && watched->take_if_it_hangs();
    std::optional<Error> error;
    if (hangs)
      error = watched->hang_error(processes.lost_error(names_.operation, *loss),
                                  processes.name(group_.number()), names_.user);
    lock.lock();
    if (!hangs) continue;
    hang_ = error;
    std::vector<Server*> servers(servers_.size());
    std::ranges::transform(servers_, servers.begin(),
                           [](auto const& server) { return server.get(); });
    lock.unlock();
    for (auto* const server : servers) fail_all(*server, *error);
    return;
  }
}

void Server::fail_all(Error const& error, u32 processes) {
  close(error);
  for (u32 process = 0; process < processes; ++process) channel().lose(process, error.cause());
}

void ProgressThread::look_for_losses(std::vector<Server*> const& servers) {
  auto& processes = group_.processes();
  if (!processes.gone()) return;
  auto const losses = processes.losses();
  std::optional<Error> all;
  // The others have given up this process, which was stopped: they read nothing of it any more.
  if (auto const own = processes.gone(group_.number()))
    all = processes.lost_error(names_.operation, *own);
  // Processes hear of losses through process 0 alone, and tell each other through it. Without it
  // two survivors could wait for each other for ever.
  else if (auto const first = processes.gone(0)) {
    auto const error = processes.lost_error(names_.operation, *first);
    all = Error(error.kind(), error.operation(),
                fmt::format("{}; without process 0 nobody hears of further losses, so {} between "
                            "other processes end, too",
                            error.cause(), names_.operations),
                error.remedy());
  }
  for (auto* const server : servers) {
    for (auto const& loss : losses) server->channel().lose(loss.process, loss.how);
    if (all) fail_all(*server, *all);
    else if (!losses.empty() && !server->channel().engine().outlives_peers())
      fail_all(*server, processes.lost_error(names_.operation, losses.front()));
  }
}

}  // namespace meshpost
