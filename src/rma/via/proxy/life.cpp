// The proxy's thread, and what each run finds: a World has one proxy, for all its runs.
//
// Between runs nobody drives it (`awake_`), and nobody else than the thread that supervises runs
// touches what a round does. Of a run that went well nothing is left: its ranks have ended, all
// that they asked for was taken from the rings and has arrived (settle()), and what no rank had
// opened was carried out (Access::end). So the next run goes on in rings and mailboxes where that
// one ended: a place or a letter is known by its number, which no earlier one in its place has had.
#include <sched.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "base/host_places.hpp"
#include "rma/via/proxy/proxy.hpp"

namespace meshpost::detail {

// No run is under way, so the thread sleeps, or is about to.
Proxy::~Proxy() {
  {
    std::scoped_lock const lock(resting_);
    ending_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Proxy::begin_thread() {
  hooks::at("start the proxy's thread");
  thread_ = std::thread([this] { work(); });
}

void Proxy::start(u32 run) {
  settled_ = over_ = false;
  run_ = run;
  if (!in_order_) begin_anew();
  // Ranks count what they wait for from 0 in each run.
  for (auto const& own : own_) std::memset(own.done.data(), 0, own.done.size());
  // Nothing of earlier runs changes windows any more.
  for (auto& peer : peers_of_net_) {
    peer.undelivered.clear();
    peer.unsettled.clear();
  }
  {
    std::scoped_lock const lock(of_ranks_);
    withdrawn_ = false;
  }
  wake_up();
}

// Before the first run, and behind one that came to nothing: its ranks may have taken places in a
// ring that they never filled, and left letters half opened. Behind one that went well the numbers
// of places and letters go on, for nothing is left in them.
void Proxy::begin_anew() {
  for (u32 i = 0; i < own_.size(); ++i) {
    auto& own = own_[i];
    own.taken = 0;
    std::memset(own.records.data(), 0, own.records.size());
    std::memset(own.tail.data(), 0, own.tail.size());
    layout_.devices[i]->fill(own.words.data(), 0, own.words.size());
    own.access->begin();
  }
  in_order_ = true;
}

void Proxy::wake_up() {
  {
    std::scoped_lock const lock(resting_);
    awake_ = woken_ = true;
  }
  wakes_.notify_all();
}

void Proxy::stop() {
  if (!awake_.load() || (channel_ && channel_->hangs())) return;
  try {
    auto const alone = this->alone();  // a round that somebody is in ends before
    awake_ = false;
  } catch (Error const&) {
    return;  // the thread that hangs has all that follows
  }
  // Nobody drives any more. The thread sees it when it next looks, and sleeps.
  gets_.clear();
  // Of a run that came to nothing: what is read for it no more would hold up all behind it.
  for (auto& peer : peers_of_net_) peer.queue.clear();
  in_order_ = false;  // if this throws
  bool const settled = std::exchange(settled_, false);
  end_accesses(settled);
  in_order_ = settled;
}

void Proxy::end_accesses(bool well) {
  std::exception_ptr failed;  // of one device: the others are told all the same
  for (auto const& own : own_) try {
      hooks::at("part from a device");
      if (well) own.access->end();
      else own.access->drop();
    } catch (...) {
      if (!failed) failed = std::current_exception();
    }
  if (failed) std::rethrow_exception(failed);
}

void Proxy::work() {
  while (await_run()) attend_run();
}

// Asleep; false: this is the end.
bool Proxy::await_run() {
  std::unique_lock lock(resting_);
  wakes_.wait(lock, [this] { return ending_.load() || awake_.load(); });
  return !ending_.load();
}

void Proxy::attend_run() {
  constexpr std::chrono::microseconds nap{50}, longest_nap{1000};
  auto away = nap;  // while others do the work
  u64 helps = helps_.load(std::memory_order_relaxed);
  for (u32 rests = 0; awake_.load();) {
    u64 const before = std::exchange(helps, helps_.load(std::memory_order_relaxed));
    if (helps != before) {
      rests = 0;
      rest(away);
      away = std::min(2 * away, longest_nap);
      continue;
    }
    away = nap;
    if (drive(false)) {
      rests = 0;
    } else if (++rests < 100'000 && !shares_cores_) {
      continue;                 // ranks on GPUs: a core is this thread's own
    } else if (rests < 4000) {  // at once: the ranks may share this core
      sched_yield();
    } else {
      rest(nap);
    }
  }
}

void Proxy::rest(std::chrono::microseconds length) {
  std::unique_lock lock(resting_);
  wakes_.wait_for(lock, length, [this] { return !awake_.load() || woken_; });
  woken_ = false;
}

}  // namespace meshpost::detail
