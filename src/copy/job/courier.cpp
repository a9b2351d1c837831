#include "copy/job/courier.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"

namespace meshpost::copying {

Desk& Courier::add(std::string const& operation, std::function<std::unique_ptr<Desk>()> const& make,
                   bool by_network) {
  std::unique_ptr<Desk> desk;
  peers_.together(operation, [&] {
    desk = make();
    prepare(by_network);
  });
  std::scoped_lock const lock(mutex_);
  if (hang_) desk->fail_all(*hang_);
  if (by_network) watched_ = &desk->channel();
  desks_.push_back(std::move(desk));  // there is room
  return *desks_.back();
}

// All that may fail. Threads without a desk do nothing, and are there at the next try.
void Courier::prepare(bool by_network) {
  std::scoped_lock const lock(mutex_);
  desks_.reserve(desks_.size() + 1);
  if (!thread_.joinable()) thread_ = start_thread("serve a JobMemory", [this] { work(); });
  if (by_network && !watcher_.joinable())
    watcher_ = start_thread("watch over a JobMemory", [this] { watch(); });
}

StatePtr Courier::ask(Desk& desk, Wish const& wish) {
  auto state = desk.ask(wish);
  std::scoped_lock const lock(mutex_);
  asked_ = true;
  wake_.notify_one();
  return state;
}

void Courier::stop() {
  {
    std::scoped_lock const lock(mutex_);
    if (!thread_.joinable()) return;
    stopping_ = true;
    wake_.notify_one();
  }
  if (watcher_.joinable()) watcher_.join();  // ends as the thread does, or is seen to hang
  if (hang_) return;
  thread_.join();
  for (auto const& desk : desks_)
    desk->end_all({Kind::misuse, "copy", "its JobMemory is gone", "keep it longer"});
}

void Courier::work() {
  constexpr u32 at_once = 2000;  // looks, before it rests: the others may share this core
  std::vector<Desk*> desks;
  for (u32 rests = 0, rounds = 1;; ++rounds) {
    {
      std::unique_lock lock(mutex_);
      if (rests >= at_once) {
        bool const idle = std::ranges::all_of(desks, [](auto* desk) { return desk->idle(); });
        auto const rest = idle && rests > 2 * at_once ? longest_rest : short_rest;
        wake_.wait_for(lock, rest, [this] { return stopping_ || asked_; });
      }
      if (stopping_) {
        ended_ = true;
        ends_.notify_one();
        return;
      }
      if (std::exchange(asked_, false)) rests = 0;
      desks.clear();
      for (auto const& desk : desks_) desks.push_back(desk.get());
    }
    bool any = false;  // without the lock: desks copy, and end copies that others wait for
    for (auto* const desk : desks) any |= desk->work();
    rests = any ? 0 : rests + 1;
    if (rounds % 1000 == 0) look_for_losses(desks);
    if (rests < at_once) sched_yield();
  }
}

}  // namespace meshpost::copying
