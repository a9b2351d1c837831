// When the courier's thread does not come back from a network engine: why it may be so, see
// src/rma/via/proxy/driver.cpp. Here a second thread watches it, which never enters an engine:
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
// - Others' copies from and to this process would never be answered. They are told, by way of the
//   bootstrap, and take this process for lost.
// - The JobMemory's end begins with an exchange, which throws, as a process is lost.
#include <fmt/format.h>

#include <algorithm>

#include "copy/job/courier.hpp"
#include "net/watched.hpp"

namespace meshpost::copying {

std::unique_ptr<net::Engine> Courier::watched(std::unique_ptr<net::Engine> engine) {
  engine_ = engine.get();
  return std::make_unique<net::Watched>(std::move(engine), rounds_);
}

void Courier::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, net::Rounds::longest_pause, [this] { return ended_; })) {
    auto const loss = peers_.processes().lost();
    if (!loss || !rounds_.take_if_long()) continue;
    auto const error = peers_.processes().lost_error("copy", *loss);
    hang_.emplace(
        error.kind(), error.operation(),
        fmt::format("{}; and a thread of {} does not come back from {}, so its JobMemory "
                    "is of no more use",
                    error.cause(), peers_.processes().name(peers_.number()), engine_->name()),
        error.remedy());
    std::vector<Desk*> desks(desks_.size());
    std::ranges::transform(desks_, desks.begin(), [](auto const& desk) { return desk.get(); });
    lock.unlock();  // ends of copies call others
    engine_->abandon();
    peers_.processes().post(hang_channel(), Processes::everyone, hang_->cause());
    for (auto* const desk : desks) desk->fail_all(*hang_);
    return;
  }
}

void Courier::look_for_losses(std::vector<Desk*> const& desks) {
  auto& processes = peers_.processes();
  auto const loss = processes.lost();
  if (!loss) return;
  for (auto* const desk : desks) {
    desk->lose(loss->process, loss->how);
    if (!desk->outlives_others()) desk->fail_all(processes.lost_error("copy", *loss));
  }
  for (auto const& post : processes.take_posts(hang_channel()))
    for (auto* const desk : desks) desk->lose(post.from, post.bytes);
}

}  // namespace meshpost::copying
