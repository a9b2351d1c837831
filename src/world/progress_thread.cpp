#include "world/progress_thread.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/caught.hpp"
#include "base/fork.hpp"
#include "base/thread.hpp"

namespace meshpost {

ProgressThread::ProgressThread(ProcessGroup const& group, Names names, Pace pace)
    : group_(group), names_(std::move(names)), pace_(pace) {
  servers_.reserve(most_servers);
  failed_.reserve(most_servers);
}

// If the thread hangs, it stays in the engine of one of the servers, and touches nothing else.
ProgressThread::~ProgressThread() {
  stop(false);
  if (!hang_) return;
  for (auto& server : servers_) keep_for_ever(server.release());
  thread_.detach();
}

void ProgressThread::start(bool watched) {
  std::scoped_lock const lock(mutex_);
  if (thread_.joinable()) return;
  // First: it ends as the other one does, which may fail to start.
  ended_ = true;
  if (watched) watcher_ = start_thread("watch over a " + names_.user, [this] { watch(); });
  thread_ = start_thread("serve a " + names_.user, [this] { work(); });
  ended_ = false;
}

void ProgressThread::add(std::unique_ptr<Server> server, bool by_network) noexcept {
  std::unique_lock lock(mutex_);
  if (by_network) watched_ = &server->channel();
  servers_.push_back(std::move(server));
  auto& added = *servers_.back();
  if (!hang_) return;
  lock.unlock();
  fail_all(added, *hang_);
}

void ProgressThread::wake() {
  std::scoped_lock const lock(mutex_);
  asked_ = true;
  wake_.notify_one();
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
  Error const gone(
      Kind::misuse, names_.operation,
      fmt::format("the {} of {} is gone", names_.user, group_.processes().name(group_.number())),
      "keep it longer");
  for (auto const& server : servers_)
    if (agreed) server->close(gone);
    else fail_all(*server, gone);
}

// A server whose memory or network has failed is closed, so nobody waits for it.
bool ProgressThread::work(Server& server) {
  if (std::ranges::find(failed_, &server) != failed_.end()) return false;
  try {
    return server.work();
  } catch (...) {
    failed_.push_back(&server);
    fail_all(server, caught(names_.operation));
    return true;
  }
}

void ProgressThread::work() {
  constexpr u32 at_once = 2000;  // looks, before it rests: the others may share this core
  std::vector<Server*> servers;
  for (u32 idle_rounds = 0, rounds = 1;; ++rounds) {
    {
      std::unique_lock lock(mutex_);
      if (idle_rounds >= at_once) {
        bool const idle = std::ranges::all_of(servers, [](auto* server) { return server->idle(); });
        bool const longer = idle && idle_rounds > at_once + pace_.short_sleeps;
        auto const rest = longer ? pace_.longest_sleep : short_sleep;
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
    bool any = false;  // without the lock: servers copy, and end what others wait for
    for (auto* const server : servers) any |= work(*server);
    idle_rounds = any ? 0 : idle_rounds + 1;
    if (rounds % 1000 == 0) look_for_losses(servers);
    if (idle_rounds < at_once) sched_yield();
  }
}

}  // namespace meshpost
