#include "copy/job/progress_thread.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"

namespace meshpost::copying {

ProgressThread::ProgressThread(ProcessGroup const& group) : group_(group) {
  servers_.reserve(most_servers);
}

ProgressThread::~ProgressThread() { stop(false); }

void ProgressThread::start(bool watched) {
  std::scoped_lock const lock(mutex_);
  if (thread_.joinable()) return;
  // First: it ends as the other one does, which may fail to start.
  ended_ = true;
  if (watched) watcher_ = start_thread("watch over a JobMemory", [this] { watch(); });
  thread_ = start_thread("serve a JobMemory", [this] { work(); });
  ended_ = false;
}

CopyServer& ProgressThread::add(std::unique_ptr<CopyServer> server, bool by_network) noexcept {
  std::scoped_lock const lock(mutex_);
  if (by_network) watched_ = &server->channel();
  servers_.push_back(std::move(server));
  if (hang_) servers_.back()->fail_all(*hang_);
  return *servers_.back();
}

StatePtr ProgressThread::ask(CopyServer& server, CopyRequest const& request) {
  auto state = server.ask(request);
  std::scoped_lock const lock(mutex_);
  asked_ = true;
  wake_.notify_one();
  return state;
}

void ProgressThread::stop(bool agreed) {
  {
    std::scoped_lock const lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  if (watcher_.joinable()) watcher_.join();  // ends as the thread does, or is seen to hang
  if (hang_ || !thread_.joinable()) return;
  thread_.join();
  Error const gone(Kind::misuse, "copy",
                   "the JobMemory of " + group_.processes().name(group_.number()) + " is gone",
                   "keep it longer");
  for (auto const& server : servers_)
    if (agreed) server->close(gone);
    else server->fail_all(gone);
}

void ProgressThread::work() {
  constexpr u32 at_once = 2000;  // looks, before it rests: the others may share this core
  std::vector<CopyServer*> servers;
  for (u32 idle_rounds = 0, rounds = 1;; ++rounds) {
    {
      std::unique_lock lock(mutex_);
      if (idle_rounds >= at_once) {
        bool const idle = std::ranges::all_of(servers, [](auto* server) { return server->idle(); });
        auto const rest = idle && idle_rounds > 2 * at_once ? longest_sleep : short_sleep;
        wake_.wait_for(lock, rest, [this] { return stopping_ || asked_; });
      }
      if (stopping_) {
        ended_ = true;
        ends_.notify_one();
        return;
      }
      if (std::exchange(asked_, false)) idle_rounds = 0;
      servers.clear();
      for (auto const& server : servers_) servers.push_back(server.get());
    }
    bool any = false;  // without the lock: copy servers copy, and end copies that others wait for
    for (auto* const server : servers) any |= server->work();
    idle_rounds = any ? 0 : idle_rounds + 1;
    if (rounds % 1000 == 0) look_for_losses(servers);
    if (idle_rounds < at_once) sched_yield();
  }
}

}  // namespace meshpost::copying
